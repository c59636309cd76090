// SPDX-License-Identifier: Apache-2.0

// Command tour is an MCP client made with the Go SDK that uses every feature of
// the protocol, step by step, and prints what it got as JSON lines. tour.mjs is
// the same program with the TypeScript SDK. Both take the same flags and read the
// same steps:
//
//	tour -url URL -token TOKEN -era legacy|modern -prefix PREFIX -steps FILE
//
// PREFIX is before the names of tools and prompts. A step is a JSON object:
//
//	do         list, call, cancel, read, subscribe, unsubscribe, prompt, complete, level or ping
//	name       of a tool or a prompt; of a list: tools, resources, templates or prompts
//	uri        of a resource, or of a template whose variable is completed
//	arguments  of a tool or a prompt
//	argument   that is completed; context: the arguments that are known already
//	level      of the log
//	await      how many notifications come at least, by kind, before the step is over
//	era        in which the step is made; both when there is none
//
// A line has the step, what came as the result, and what was heard meanwhile: the
// kinds are progress, log, asked (what the server asked; the client answers from
// the schema), updated and changed. What is different each time is replaced: times
// of day and ids of sessions.
package main
