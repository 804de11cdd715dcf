import java.sql.Connection;
import java.sql.DatabaseMetaData;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;

/** Calls the JDBC driver of Flight SQL, and prints one line `name: answer` for each operation. */
public class Jdbc {
    interface Operation {
        Object run() throws SQLException;
    }

    static void print(String name, Operation operation) {
        Object answer;
        try {
            answer = operation.run();
        } catch (SQLException | RuntimeException error) {
            answer = "error " + error.getMessage();
        }
        System.out.println(name + ": " + String.valueOf(answer).replace("\n", " "));
    }

    /** The rows of a result, in order. */
    static List<List<Object>> rows(ResultSet result) throws SQLException {
        List<List<Object>> found = new ArrayList<>();
        int width = result.getMetaData().getColumnCount();
        while (result.next()) {
            List<Object> row = new ArrayList<>();
            for (int column = 1; column <= width; column++) {
                row.add(result.getObject(column));
            }
            found.add(row);
        }
        return found;
    }

    static Object query(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return rows(statement.executeQuery(sql));
        }
    }

    static Object bound(Connection connection, String sql, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int index = 0; index < values.length; index++) {
                statement.setObject(index + 1, values[index]);
            }
            return rows(statement.executeQuery());
        }
    }

    static Object update(Connection connection, String sql) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            return statement.executeUpdate(sql);
        }
    }

    static Object column(ResultSet listed, String name) throws SQLException {
        List<String> found = new ArrayList<>();
        while (listed.next()) {
            found.add(listed.getString(name));
        }
        return found;
    }

    public static void main(String[] arguments) throws SQLException {
        try (Connection connection = DriverManager.getConnection(arguments[0])) {
            DatabaseMetaData about = connection.getMetaData();
            String one = "SELECT id, title FROM items WHERE id = ? AND title = ?";
            print("product", about::getDatabaseProductName);
            print("query", () -> query(connection, "SELECT id, title FROM items ORDER BY id"));
            print("parameters", () -> bound(connection, one, 2L, "it's"));
            print("types", () -> query(connection,
                "SELECT true, 1.5, date '2024-02-29', timestamp '2024-02-29 12:30:00', "
                    + "CAST(2.50 AS decimal(5,2)), NULL"));
            print("count", () -> query(connection,
                "SELECT count(*) FROM generate_series(1, 100000)"));
            print("insert", () -> update(connection, "INSERT INTO kept VALUES (7), (8)"));
            print("kept", () -> query(connection, "SELECT id FROM kept ORDER BY id"));
            print("schemas", () -> column(about.getSchemas(), "TABLE_SCHEM"));
            print("tables", () -> column(about.getTables(null, "public", "%", null), "TABLE_NAME"));
            print("columns", () -> column(
                about.getColumns(null, "public", "items", "%"), "COLUMN_NAME"));
            print("mistake", () -> query(connection, "SELECT nothing FROM items"));
        }
    }
}
