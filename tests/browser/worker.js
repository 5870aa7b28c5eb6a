// SPDX-License-Identifier: BSD-2-Clause
// Runs the trace processor. Only its 32-bit build is at hand, so that its test for 64-bit memory must fail.
'use strict';

const Module64 = WebAssembly.Module;

WebAssembly.Module = class extends Module64 {
	constructor(bytes) {
		// A section of memories (5) whose only one has the 64-bit flag (4).
		if (bytes[8] === 5 && bytes[11] === 4)
			throw new WebAssembly.CompileError('no 64-bit memory');
		super(bytes);
	}
};
importScripts('engine_bundle.node.js');
