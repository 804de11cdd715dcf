"""Changes of tables of MariaDB, from its binary log; the registry refers to `source`."""
