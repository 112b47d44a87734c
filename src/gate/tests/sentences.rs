//! The sentences of the gate, each as a test over the state machine alone.
