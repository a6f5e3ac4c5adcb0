/** Stylesheet of the documentation pages. Loads nothing from other origins. */
export const docsStyle = `
:root {
  color-scheme: light dark;
  --ground: #ffffff;
  --panel: #f2f4f7;
  --ink: #16181d;
  --line: #c3cad5;
  --accent: #1b4fd6;
}
@media (prefers-color-scheme: dark) {
  :root { --ground: #14161a; --panel: #1d2026; --ink: #eceef2; --line: #444b58; --accent: #8fb0ff; }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--ink); font: 1rem/1.6 system-ui, sans-serif; }
header, footer { display: flex; flex-wrap: wrap; gap: 0.5rem 1.5rem; align-items: center; padding: 0.75rem 1.5rem; }
header { border-bottom: 1px solid var(--line); }
footer { border-top: 1px solid var(--line); }
nav a { margin-right: 1rem; }
main { max-width: 52rem; margin: 0 auto; padding: 1rem 1.5rem 2rem; }
main.wide { max-width: 92rem; padding: 0 0 2rem; }
h1 { font-size: 1.6rem; line-height: 1.25; }
h2 { font-size: 1.1rem; margin: 1.5rem 0 0.25rem; }
header a, main:not(.wide) a { color: var(--accent); }
code, pre { font: 0.9em/1.5 ui-monospace, monospace; }
main:not(.wide) pre { padding: 1rem; overflow-x: auto; background: var(--panel); border: 1px solid var(--line); border-radius: 0.5rem; }
main:not(.wide) table { width: 100%; border-collapse: collapse; }
main:not(.wide) :is(th, td) { padding: 0.35rem 0.75rem 0.35rem 0; text-align: left; border-bottom: 1px solid var(--line); }
footer button { padding: 0.25rem 0.75rem; font: inherit; color: inherit; background: transparent; border: 1px solid var(--line); border-radius: 0.5rem; cursor: pointer; }
footer button:disabled { opacity: 0.55; cursor: default; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
`.trimStart()
