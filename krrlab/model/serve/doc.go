// Package serve answers requests for predictions of a model over HTTP, for programs in other languages.
//
//	POST /predict   rows in, predictions out; Content-Type text/csv or application/json
//	GET  /          the metadata of the model as JSON
//
// Rows in CSV are read as by the command krrlab predict, and the answer has the columns of the output of this command.
// Rows in JSON are objects by column, in a list or as {"rows": […]}, or lists of cells in the order of the columns:
//
//	curl -H 'Content-Type: application/json' -d '[{"rooms": 5, "city": "Bonn"}]' http://127.0.0.1:8080/predict
//	{"value":[312.4]}
//
// null is a missing value. Every row must have the same columns. A model that was fitted to a file without a header has
// no names of columns, and accepts lists of cells only. A model that was fitted to a file with a header and with
// columns of words or dates accepts objects only. Names and types are checked as for a file, and an error is {"error":
// "…"} with a status of 400 or more. Rows of JSON in errors are counted from 0. An answer in JSON may have "notes":
// words that the model does not know, and rows far from the training points.
//
// A query after /predict, such as ?interval=0.9, is an error: there are no options.
//
// The size of a request, its time, and the number of requests and of predictions at the same time are limited. There is
// no encryption and no authentication: listen on an address that only trusted programs reach.
package serve
