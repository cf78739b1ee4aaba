package greet

import (
	"os"
	"testing"
)

func TestHi(t *testing.T) {
	if Hi() != "hi" {
		t.Fatal(Hi())
	}
}

func TestTempDir(t *testing.T) {
	if err := os.WriteFile(t.TempDir()+"/x", []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
}
