package main

import (
	"fmt"

	"example.com/m/greet"
)

func main() { fmt.Println(greet.Hi()) }
