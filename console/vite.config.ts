import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { constants, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const OUT = "../serving/caraway_serving/console/files";

/** Compresses the files when they are built, so that no request does. */
function compressed(): Plugin {
  return {
    name: "compressed",
    apply: "build",
    closeBundle() {
      for (const entry of readdirSync(OUT, { recursive: true, withFileTypes: true })) {
        if (!entry.isFile() || entry.name.endsWith(".gz")) continue;
        const path = join(entry.parentPath, entry.name);
        const small = gzipSync(readFileSync(path), { level: constants.Z_BEST_COMPRESSION });
        writeFileSync(`${path}.gz`, small);
      }
    },
  };
}

// Addresses are relative, so that the console works below any prefix of a proxy.
export default defineConfig({
  base: "./",
  plugins: [react(), compressed()],
  build: {
    outDir: OUT,
    emptyOutDir: true,
    assetsDir: "console",
    // Styles and scripts are files of their own: the policy of the page allows nothing inline.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    // One page for runtimes, and one for the management service.
    rollupOptions: { input: ["index.html", "management.html"] },
  },
});
