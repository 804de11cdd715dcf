"""Rules as pure functions over values: no database, no network, no clock of its own."""
