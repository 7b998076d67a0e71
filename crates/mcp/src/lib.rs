//! A client of MCP servers, of both eras of the protocol: which tools they have, and calls of them. It opens no connection
//! itself: HTTP goes through whoever it is given, and a process that speaks over its standard streams is started by
//! somebody else.
#![forbid(unsafe_code)]
