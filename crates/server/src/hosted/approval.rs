//! Approvals of calls of MCP tools: which calls need one, the ids by which they are asked for, and that each is used once.
