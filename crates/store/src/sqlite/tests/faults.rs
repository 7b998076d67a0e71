//! The disk says no, or the process is gone in the middle of a call.
