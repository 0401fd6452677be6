// One script and one style sheet with fixed names, beside the board's own; the server sends them, nothing else does.
import { defineConfig } from "vite";

export default defineConfig({
  publicDir: false,
  build: {
    outDir: "../src/headway/ui/board/static/built",
    emptyOutDir: true,
    target: "es2022",
    cssCodeSplit: false,
    modulePreload: false,
    lib: { entry: "src/main.ts", formats: ["es"], fileName: () => "charts.js", cssFileName: "charts" },
  },
});
