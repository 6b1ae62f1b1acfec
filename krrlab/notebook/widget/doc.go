// Package widget implements the kernel's side of Jupyter's widget protocol: sliders, boxes and buttons in an output of
// a notebook, whose values the kernel holds.
//
// A [Set] holds the models of a kernel. [Set.Open] adds one and announces it to the front ends by a comm of the target
// jupyter.widget; [Model.Change] changes it there. [Set.Receive] handles the messages of front ends: a value that the
// user has changed is checked, stored and passed to the callback of the model.
//
// Two versions of the protocol are in use. Version 2 is that of ipywidgets 7 and 8, in JupyterLab, VS Code and current
// notebooks, with the modules @jupyter-widgets/base and @jupyter-widgets/controls. Version 1 is that of ipywidgets 6,
// in Debian's Notebook 6, with the module jupyter-js-widgets. A front end of version 1 opens a comm of the target
// jupyter.widget.version when it connects, and one of version 2 may open jupyter.widget.control; the set speaks the
// version of the front end that connected last, and version 2 before any front end has connected. Version 1 has no
// logarithmic slider; a slider over a list of numbers replaces it.
//
// Front ends cannot create models: comms that they open, apart from the two above, are closed. The number of models and
// the size of messages are limited.
//
// The protocol is described at https://github.com/jupyter-widgets/ipywidgets/blob/main/packages/schema/messages.md.
package widget
