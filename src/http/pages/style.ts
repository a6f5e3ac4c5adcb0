/** Stylesheet of the pages. Follows the reader's colour scheme and loads nothing from other origins. */
export const style = `
:root {
  color-scheme: light dark;
  --ground: #f5f6f8;
  --card: #ffffff;
  --ink: #16181d;
  --faint: #5a6270;
  --line: #c3cad5;
  --accent: #1b4fd6;
  --on-accent: #ffffff;
  --error: #a61b1b;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #14161a;
    --card: #1d2026;
    --ink: #eceef2;
    --faint: #a2abba;
    --line: #444b58;
    --accent: #8fb0ff;
    --on-accent: #0d1530;
    --error: #ff9d94;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0;
  min-height: 100vh;
  display: grid;
  place-items: center;
  padding: 1.5rem;
  background: var(--ground);
  color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif;
}
main {
  width: min(26rem, 100%);
  padding: 2rem;
  background: var(--card);
  border: 1px solid var(--line);
  border-radius: 0.75rem;
}
h1 { margin: 0 0 1.25rem; font-size: 1.375rem; line-height: 1.25; overflow-wrap: anywhere; }
h2 { margin: 1.5rem 0 0.5rem; font-size: 1rem; }
form { display: grid; gap: 0.5rem; margin: 0.75rem 0; }
[hidden] { display: none; }
label { font-weight: 500; }
.choice { font-weight: 400; margin-right: 1rem; }
fieldset { border: 0; margin: 0; padding: 0; }
fieldset .choice { display: block; margin: 0.375rem 0; }
dl { margin: 0.75rem 0; }
dt { font-weight: 500; }
dd { margin: 0 0 0.5rem; overflow-wrap: anywhere; }
legend { font-weight: 500; padding: 0; }
input:not([type='radio'], [type='checkbox']) {
  width: 100%;
  padding: 0.625rem 0.75rem;
  font: inherit;
  color: inherit;
  background: var(--ground);
  border: 1px solid var(--line);
  border-radius: 0.5rem;
}
button {
  padding: 0.625rem 0.875rem;
  font: inherit;
  font-weight: 500;
  color: inherit;
  background: transparent;
  border: 1px solid var(--line);
  border-radius: 0.5rem;
  cursor: pointer;
}
button:hover:not(:disabled) { border-color: var(--accent); }
button:disabled { opacity: 0.55; cursor: default; }
.primary { color: var(--on-accent); background: var(--accent); border-color: var(--accent); }
h1:focus { outline: none; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
details { margin: 0.75rem 0; border-top: 1px solid var(--line); padding-top: 0.75rem; }
summary { cursor: pointer; font-weight: 500; }
.others { margin-top: 0.75rem; border-top: 1px solid var(--line); padding-top: 0.25rem; }
form + .hint, summary + .hint { margin-top: 0.75rem; }
input[aria-invalid='true'] { border-color: var(--error); }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.code { font: 600 1.5rem/1.5 ui-monospace, monospace; letter-spacing: 0.05em; }
.hint { margin: 0; color: var(--faint); font-size: 0.875rem; overflow-wrap: anywhere; }
ul { list-style: none; margin: 0; padding: 0; }
li { display: flex; justify-content: space-between; align-items: center; gap: 1rem; padding: 0.5rem 0; border-bottom: 1px solid var(--line); }
li:last-child { border-bottom: 0; }
a { color: var(--accent); }
#status { min-height: 1.5em; margin: 1rem 0 0; color: var(--faint); }
.error, #status[data-kind='error'] { color: var(--error); }
`.trimStart()
