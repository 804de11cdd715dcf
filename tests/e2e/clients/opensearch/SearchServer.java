// The server of indexes that tests read: one node of OpenSearch, or of Elasticsearch, whose classes
// have the same names in another package.
//
// It prints its port, and ends with its standard input.

import java.util.List;
import java.util.Map;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.http.HttpServerTransport;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.transport.Netty4Plugin;

public class SearchServer extends Node {
  SearchServer(Environment environment) {
    super(environment, List.of(Netty4Plugin.class), false);
  }

  public static void main(String[] arguments) throws Exception {
    Settings settings = Settings.builder()
        .put("path.home", arguments[0])
        .put("cluster.name", "tests")
        .put("discovery.type", "single-node")
        .put("network.host", "127.0.0.1")
        .put("http.type", "netty4")
        .put("http.port", "0")
        .put("transport.type", "netty4")
        .put("transport.port", "0")
        .put("cluster.routing.allocation.disk.threshold_enabled", false)
        .build();
    Node node = new SearchServer(
        InternalSettingsPreparer.prepareEnvironment(settings, Map.of(), null, () -> "one")).start();
    HttpServerTransport http = node.injector().getInstance(HttpServerTransport.class);
    System.out.println(http.boundAddress().publishAddress().getPort());
    System.in.read();
    System.exit(0);
  }
}
