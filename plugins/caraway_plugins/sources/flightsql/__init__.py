"""The sources of tables behind Flight SQL: of servers of others, and of Caraway itself."""
