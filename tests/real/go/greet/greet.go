package greet

// Hi greets.
func Hi() string { return "hi" }
