// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 what is deprecated still works, and servers have it

package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// do makes a step and returns the result of its request.
func (t *tour) do(ctx context.Context, s step) (any, error) {
	switch s.Do {
	case "list":
		return t.list(ctx, s.Name)
	case "call":
		return t.call(ctx, s)
	case "cancel":
		return t.cancel(ctx, s)
	case "read":
		return t.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: s.URI})
	case "subscribe":
		return nil, t.session.Subscribe(ctx, &mcp.SubscribeParams{URI: s.URI})
	case "unsubscribe":
		return nil, t.session.Unsubscribe(ctx, &mcp.UnsubscribeParams{URI: s.URI})
	case "prompt":
		arguments, err := object[string](s.Arguments)
		if err != nil {
			return nil, err
		}
		return t.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: t.prefix + s.Name, Arguments: arguments})
	case "complete":
		return t.complete(ctx, s)
	case "level":
		t.level = s.Level
		if t.era == "modern" {
			return nil, nil // each call says it
		}
		return nil, t.session.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(s.Level)})
	case "ping":
		return nil, t.session.Ping(ctx, nil)
	}
	return nil, fmt.Errorf("no such step: %q", s.Do)
}

// list returns all items of a list.
func (t *tour) list(ctx context.Context, of string) (any, error) {
	var items []any
	var failed error
	switch of {
	case "tools":
		for item, err := range t.session.Tools(ctx, nil) {
			items, failed = append(items, item), errors.Join(failed, err)
		}
	case "resources":
		for item, err := range t.session.Resources(ctx, nil) {
			items, failed = append(items, item), errors.Join(failed, err)
		}
	case "templates":
		for item, err := range t.session.ResourceTemplates(ctx, nil) {
			items, failed = append(items, item), errors.Join(failed, err)
		}
	case "prompts":
		for item, err := range t.session.Prompts(ctx, nil) {
			items, failed = append(items, item), errors.Join(failed, err)
		}
	default:
		return nil, fmt.Errorf("no such list: %q", of)
	}
	if failed != nil {
		return nil, failed
	}
	return map[string]any{"items": items}, nil
}

// call calls a tool, and wants to know of its progress.
func (t *tour) call(ctx context.Context, s step) (any, error) {
	arguments, err := object[any](s.Arguments)
	if err != nil {
		return nil, err
	}
	params := &mcp.CallToolParams{Name: t.prefix + s.Name, Arguments: arguments, Meta: mcp.Meta{}}
	params.SetProgressToken(t.ears.listen())
	if t.era == "modern" && t.level != "" {
		params.Meta[mcp.MetaKeyLogLevel] = t.level
	}
	return t.session.CallTool(ctx, params)
}

// cancel calls a tool, and takes it back when it reports its first progress.
func (t *tour) cancel(ctx context.Context, s step) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t.ears.once("progress", cancel)
	result, err := t.call(ctx, s)
	if errors.Is(err, context.Canceled) {
		return "cancelled", nil
	}
	return result, err
}

// complete completes an argument of a prompt, or a variable of a template.
func (t *tour) complete(ctx context.Context, s step) (any, error) {
	ref := &mcp.CompleteReference{Type: "ref/resource", URI: s.URI}
	if s.Name != "" {
		ref = &mcp.CompleteReference{Type: "ref/prompt", Name: t.prefix + s.Name}
	}
	params := &mcp.CompleteParams{
		Ref:      ref,
		Argument: mcp.CompleteParamsArgument{Name: s.Argument["name"], Value: s.Argument["value"]},
	}
	if s.Context != nil {
		params.Context = &mcp.CompleteContext{Arguments: s.Context}
	}
	return t.session.Complete(ctx, params)
}
