// The server of MongoDB's protocol that tests read: FerretDB, which keeps documents in SQLite.
//
// It prints its address, and ends with its standard input.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/FerretDB/FerretDB/ferretdb"
)

func main() {
	if err := serve(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(address, folder string) error {
	server, err := ferretdb.New(&ferretdb.Config{
		Listener:  ferretdb.ListenerConfig{TCP: address},
		Handler:   "sqlite",
		SQLiteURL: "file:" + folder + "/",
	})
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		fmt.Println(server.MongoDBURI())
		io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	return server.Run(ctx)
}
