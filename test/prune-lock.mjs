// SPDX-License-Identifier: Apache-2.0

// Takes optional dependencies that package-lock.json does not hold out of the
// packages that name them. They are builds for platforms whose version the
// registry did not have when the lock was made; `npm ci` refuses a lock that
// names a package without pinning it.
//
// Run it in a folder with a package-lock.json, after each `npm install`.

import { readFileSync, writeFileSync } from "node:fs";

const file = "package-lock.json";
const lock = JSON.parse(readFileSync(file, "utf8"));

/** Tells whether a package at a place in the tree can see a package of that name. */
function isLocked(place, name) {
  for (let at = place; ; at = at.slice(0, Math.max(at.lastIndexOf("/node_modules/"), 0))) {
    if (lock.packages[(at && at + "/") + "node_modules/" + name]) return true;
    if (!at) return false;
  }
}

for (const [place, entry] of Object.entries(lock.packages)) {
  for (const name of Object.keys(entry.optionalDependencies ?? {})) {
    if (place && !isLocked(place, name)) {
      console.log(`${place}: without ${name}`);
      delete entry.optionalDependencies[name];
    }
  }
}
writeFileSync(file, JSON.stringify(lock, null, 2) + "\n");
