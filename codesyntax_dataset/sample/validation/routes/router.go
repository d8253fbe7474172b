// Package routes finds the handler of a path.
package routes

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
)

// Handler answers a request with the parameters of its path.
type Handler func(parameters map[string]string) string

type node struct {
	children map[string]*node
	wildcard string
	handler  Handler
}

// Router is a tree of the parts of paths.
type Router struct {
	root node
}

// Handle adds a path such as `/users/:id/posts`.
func (r *Router) Handle(path string, handler Handler) {
	current := &r.root
	for _, part := range split(path) {
		name := part
		if part[0] == ':' {
			name, current.wildcard = ":", part[1:]
		}
		if current.children == nil {
			current.children = make(map[string]*node)
		}
		next, ok := current.children[name]
		if !ok {
			next = &node{}
			current.children[name] = next
		}
		current = next
	}
	current.handler = handler
}

// Find returns the handler of a path, and its parameters.
func (r *Router) Find(path string) (Handler, map[string]string) {
	parameters := map[string]string{}
	current := &r.root
	for _, part := range split(path) {
		if next := current.children[part]; next != nil {
			current = next
		} else if next := current.children[":"]; next != nil {
			parameters[current.wildcard] = part
			current = next
		} else {
			return nil, nil
		}
	}
	return current.handler, parameters
}

func split(path string) []string {
	for len(path) > 0 && path[0] == '/' {
		path = path[1:]
	}
	if path == "" {
		return nil
	}
	return strings.Split(path, "/")
}

// Paths lists all paths that have a handler.
func (r *Router) Paths() []string {
	var paths []string
	var walk func(current *node, path string)
	walk = func(current *node, path string) {
		if current.handler != nil {
			paths = append(paths, path)
		}
		for name, child := range current.children {
			if name == ":" {
				name += current.wildcard
			}
			walk(child, path+"/"+name)
		}
	}
	walk(&r.root, "")
	sort.Strings(paths)
	return paths
}

// Parameter reads a value as what the default is.
func Parameter(parameters map[string]string, name string, fallback any) (any, error) {
	text, ok := parameters[name]
	if !ok {
		return fallback, nil
	}
	switch fallback.(type) {
	case int:
		return strconv.Atoi(text)
	case bool:
		return strconv.ParseBool(text)
	case string:
		return text, nil
	default:
		return nil, fmt.Errorf("no value of type %T can be read", fallback)
	}
}

// Page cuts out one page of a list.
func Page[T any](items []T, number, size int) []T {
	first := (number - 1) * size
	if first < 0 || first >= len(items) {
		return nil
	}
	last := first + size
	if last > len(items) {
		last = len(items)
	}
	return items[first:last]
}
