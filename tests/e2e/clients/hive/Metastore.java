// The Hive metastore that tests read. It prints its port, and ends with its standard input.

import java.io.IOException;
import java.net.ServerSocket;
import java.net.Socket;
import org.apache.hadoop.hive.metastore.HiveMetaStore;

public class Metastore {
  public static void main(String[] arguments) throws Exception {
    int port;
    try (ServerSocket free = new ServerSocket(0)) {
      port = free.getLocalPort();
    }
    Thread server = new Thread(() -> serve(port));
    server.start();
    while (!isUp(port)) {
      Thread.sleep(50);
    }
    System.out.println(port);
    System.in.read();
    Runtime.getRuntime().halt(0);
  }

  private static void serve(int port) {
    try {
      HiveMetaStore.main(new String[] {"-p", Integer.toString(port)});
    } catch (Throwable failure) {
      failure.printStackTrace();
      Runtime.getRuntime().halt(1);
    }
  }

  private static boolean isUp(int port) {
    try (Socket socket = new Socket("127.0.0.1", port)) {
      return true;
    } catch (IOException failure) {
      return false;
    }
  }
}
