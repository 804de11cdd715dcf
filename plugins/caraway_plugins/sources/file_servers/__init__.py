"""Sources of files on FTP and SFTP servers: listed at the server, and read from copies."""
