// Package jupyter is the wire side of a Jupyter kernel: the messaging protocol, version
// 5.4, over ZeroMQ.
//
// Listen opens the five sockets that a connection file names, and Serve answers what
// comes until it is told to stop. What a cell means is not known here: a Language runs
// cells, completes and explains; the server calls one method of it at a time, but for
// Interrupt, which may come at any time.
//
// Requests of the shell channel are answered in the order they come, those of the control
// channel (interrupt, shutdown, kernel_info) at once. After a cell that failed, the
// cells that wait already are not run if their sender wished so (stop_on_error). Messages
// whose signature is wrong are dropped. The iopub channel is an XPUB socket of our own:
// each subscriber is greeted (iopub_welcome) and has its own queue, so that one that
// does not read holds nobody up.
//
// The protocol is described at https://jupyter-client.readthedocs.io/en/stable/messaging.html.
package jupyter
