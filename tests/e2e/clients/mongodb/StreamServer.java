// A server of MongoDB's protocol with change streams, which tests follow: mongo-java-server, in
// memory. It says to be as new as its clients want, has tokens as a replica set has them, and
// forgets all changes before a token of zeros.
//
// It prints its address, and ends with its standard input.

import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.bson.BsonTimestamp;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.exception.MongoServerError;
import io.netty.channel.Channel;
import java.util.List;

public class StreamServer {
  static final String FORGOTTEN = "0000000000000000";

  public static void main(String[] arguments) throws Exception {
    MongoServer server = new MongoServer(new Backend());
    server.enableOplog();
    System.out.println(server.bindAndGetConnectionString());
    System.in.read();
    server.shutdownNow();
    System.exit(0);
  }

  static class Backend extends MemoryBackend {
    @Override
    public Document handleCommand(Channel channel, String database, String command, Document query) {
      if (String.valueOf(query.get("pipeline")).contains(FORGOTTEN)) {
        throw new MongoServerError(286, "ChangeStreamHistoryLost", "the resume point is gone");
      }
      long begun = System.currentTimeMillis() / 1000 << 32;
      Document answer = super.handleCommand(
          channel, database, command.equals("hello") ? "isMaster" : command, query);
      if (answer.containsKey("maxWireVersion")) {
        answer.put("maxWireVersion", 9);
        answer.put("isWritablePrimary", true);
        answer.put("logicalSessionTimeoutMinutes", 30);
      }
      if (String.valueOf(query.get("pipeline")).contains("$changeStream")) {
        answer.put("operationTime", new BsonTimestamp(begun));
        if (!String.valueOf(query.get("pipeline")).contains("resumeAfter")) {
          ((Document) answer.get("cursor")).put(
              "postBatchResumeToken", new Document("_data", String.format("%016x", begun)));
        }
      }
      if (command.equals("getMore")
          && ((List<?>) ((Document) answer.get("cursor")).get("nextBatch")).isEmpty()) {
        pause();
      }
      return answer;
    }

    private static void pause() {
      try {
        Thread.sleep(20);
      } catch (InterruptedException interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
