"""Tables of MySQL and MariaDB that are queried by the server: their definition and their rows."""
