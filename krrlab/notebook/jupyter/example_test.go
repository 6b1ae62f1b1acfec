package jupyter_test

import (
	"fmt"
	"log"

	"github.com/krrlab/lab/krrlab/notebook/jupyter"
)

// This example signs a message with the key of a connection, and decodes it with that key and with another one.
func ExampleDecode() {
	key := []byte("secret")
	frames, err := jupyter.Encode(nil, "status", "session", nil, map[string]string{"execution_state": "idle"}, key)
	if err != nil {
		log.Fatal(err)
	}
	m, err := jupyter.Decode(frames, key)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(m.Header.Type, string(m.Content))
	_, err = jupyter.Decode(frames, []byte("guess"))
	fmt.Println(err != nil)
	// Output:
	// status {"execution_state":"idle"}
	// true
}
