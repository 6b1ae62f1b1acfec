// Package jupyter implements the communication of a Jupyter kernel: version 5.4 of the messaging protocol, over ZeroMQ.
//
// Listen opens the five sockets of a connection file. Serve answers messages until it is stopped. The package is
// independent of the language of the cells: a Language runs, completes and explains cells. The server calls the methods
// of a Language for one request of each channel at a time; a request of the control channel can overlap with one of the
// shell channel.
//
// Requests of the shell channel are answered in the order of their arrival, and those of the control channel
// (interrupt, shutdown, kernel_info) immediately. After a cell has failed, queued cells are not run if the request has
// stop_on_error set. Messages with a wrong signature are dropped. The iopub channel is an XPUB socket of package zmtp.
// Each subscriber receives a welcome message (iopub_welcome) and has its own queue, so a subscriber that does not read
// delays no others.
//
// The protocol is described at https://jupyter-client.readthedocs.io/en/stable/messaging.html.
package jupyter
