/** Stylesheet of the documentation pages, in the tokens of the console. Loads nothing from other origins. */
export const docsStyle = `
:root { --shadow: var(--shadow-2); --mono: var(--font-mono); --bar: var(--bar-height); }
* { box-sizing: border-box; }
html { scroll-padding-top: calc(var(--bar) + 1rem); }
body { margin: 0; background: var(--ground); color: var(--ink); font: 0.9375rem/1.6 var(--font); overflow-wrap: break-word; }
a { color: var(--accent); text-decoration-thickness: 1px; text-underline-offset: 0.2em; }
a:hover { text-decoration-thickness: 2px; }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 0.25rem; }
main:focus { outline: none; }
.hidden { position: absolute; width: 1px; height: 1px; margin: -1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap; }
.skip { position: absolute; left: 1rem; top: -4rem; z-index: 3; padding: 0.5rem 1rem; background: var(--raised); border-radius: 0.5rem; }
.skip:focus { top: 0.5rem; }

.bar { position: sticky; top: 0; z-index: 2; display: flex; gap: 0.75rem; align-items: center; height: var(--bar); padding: 0 1.5rem; background: var(--ground); border-bottom: 1px solid var(--line); }
.brand { color: var(--ink); font-weight: 600; font-size: 1rem; text-decoration: none; }
.brand span { color: var(--ink-3); font-weight: 400; }
.chip { padding: 0.1rem 0.5rem; font-size: 0.75rem; border-radius: 999px; background: var(--hover); color: var(--ink-2); white-space: nowrap; }
.chip.sandbox { background: var(--sandbox-soft); color: var(--sandbox-ink); font-weight: 500; }
.search { position: relative; flex: 0 1 22rem; margin-left: auto; min-width: 0; }
.search input { width: 100%; height: 2.25rem; padding: 0 2.25rem 0 0.75rem; background: var(--panel); }
.search kbd { position: absolute; right: 0.5rem; top: 0.5rem; padding: 0 0.4rem; font: 0.75rem/1.25rem var(--mono); color: var(--ink-3); border: 1px solid var(--line-strong); border-radius: 0.25rem; pointer-events: none; }
.search input:focus ~ kbd { display: none; }
#results { position: absolute; right: 0; top: 2.75rem; width: min(34rem, calc(100vw - 2rem)); max-height: min(32rem, 70vh); margin: 0; padding: 0.375rem; overflow-y: auto; list-style: none; background: var(--raised); border: 1px solid var(--line-strong); border-radius: 0.75rem; box-shadow: var(--shadow); }
#results a { display: block; padding: 0.5rem 0.75rem; color: var(--ink); text-decoration: none; border-radius: 0.5rem; }
#results strong { display: block; font-weight: 500; font-size: 0.875rem; }
#results span { display: block; color: var(--ink-3); font-size: 0.8125rem; line-height: 1.4; }
#results [aria-selected=true] a, #results a:hover { background: var(--accent-soft); }
#results [aria-selected=true] :is(strong, span) { color: var(--accent-ink); }
#results .none { padding: 0.75rem; color: var(--ink-2); }

.frame { display: grid; grid-template-columns: 15.5rem minmax(0, 1fr); max-width: 90rem; margin: 0 auto; }
.contents { display: none; }
.rail { position: sticky; top: var(--bar); align-self: start; height: calc(100vh - var(--bar)); overflow-y: auto; padding: 1.5rem 0.75rem 3rem 1rem; border-right: 1px solid var(--line); }
nav p { margin: 1.25rem 0 0.25rem; padding: 0 0.625rem; color: var(--ink-3); font-size: 0.75rem; }
nav section:first-child p { margin-top: 0; }
nav ul { margin: 0; padding: 0; list-style: none; }
nav a { display: block; padding: 0.25rem 0.625rem; color: var(--ink-2); font-size: 0.875rem; text-decoration: none; border-radius: 0.375rem; overflow-wrap: anywhere; }
nav a:hover { background: var(--hover); color: var(--ink); }
nav a[aria-current] { background: var(--panel); color: var(--ink); font-weight: 500; box-shadow: 0 0 0 1px var(--line); }
nav ul ul { margin: 0.125rem 0 0.375rem 0.625rem; padding-left: 0.375rem; border-left: 1px solid var(--line-strong); }
nav ul ul a { font-size: 0.8125rem; }

main { width: 100%; max-width: 54rem; padding: 2.5rem 3rem 3rem; }
main.wide { max-width: none; display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 30rem); gap: 0 3rem; }
main.wide > footer { grid-column: 1 / -1; }
h1 { margin: 0 0 0.75rem; font-size: 1.875rem; line-height: 1.2; letter-spacing: -0.02em; font-weight: 600; }
h2 { margin: 2.5rem 0 0.75rem; font-size: 1.25rem; line-height: 1.3; letter-spacing: -0.01em; font-weight: 600; }
h3 { margin: 1.75rem 0 0.5rem; font-size: 1rem; font-weight: 600; }
:is(h2, h3) > a { color: inherit; text-decoration: none; }
:is(h2, h3) > a:hover { text-decoration: underline; }
p { margin: 0.75rem 0; }
.lead { color: var(--ink-2); font-size: 1.0625rem; }
.eyebrow { margin: 0 0 0.375rem; color: var(--ink-3); font-size: 0.8125rem; }
.eyebrow a { color: inherit; }
.quiet, .next { color: var(--ink-2); font-size: 0.875rem; }
.next { margin-top: 2.5rem; }
code, pre, textarea { font-family: var(--mono); font-size: 0.8125rem; }
:not(pre) > code { padding: 0.1em 0.3em; background: var(--hover); border-radius: 0.25rem; overflow-wrap: anywhere; }
a > code { color: inherit; }
.code { position: relative; margin: 0.75rem 0; }
pre { margin: 0.75rem 0; padding: 0.875rem 1rem; overflow-x: auto; line-height: 1.6; background: var(--panel); border: 1px solid var(--line); border-radius: 0.75rem; tab-size: 2; }
.code pre { margin: 0; padding-right: 4.5rem; }
button, .button { display: inline-block; padding: 0.375rem 0.875rem; font: inherit; font-size: 0.875rem; font-weight: 500; color: var(--ink); text-decoration: none; background: var(--panel); border: 1px solid var(--line-strong); border-radius: 0.5rem; cursor: pointer; }
:is(button, .button):hover { background: var(--hover); }
.primary { background: var(--ink); color: var(--on-primary); border-color: var(--ink); }
.primary:hover { background: var(--primary-hover); }
button:disabled { opacity: 0.55; cursor: default; }
.copy { position: absolute; top: 0.5rem; right: 0.5rem; padding: 0.125rem 0.625rem; font-size: 0.75rem; }
.actions { display: flex; flex-wrap: wrap; gap: 0.75rem; margin: 1.25rem 0 0; }
.scroll { margin: 1rem 0; overflow-x: auto; border: 1px solid var(--line); border-radius: 0.75rem; background: var(--panel); }
table { width: 100%; border-collapse: collapse; font-size: 0.875rem; }
:is(th, td) { padding: 0.5rem 0.875rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--line); }
tr:last-child td { border-bottom: 0; }
th { color: var(--ink-3); font-size: 0.75rem; font-weight: 500; }
td { min-width: 8rem; }
.onpage summary, .about summary { color: var(--ink-2); font-size: 0.875rem; cursor: pointer; }
.onpage ul { margin: 0.5rem 0 0; padding-left: 1.25rem; font-size: 0.875rem; }

.cards { display: grid; grid-template-columns: repeat(auto-fill, minmax(14rem, 1fr)); gap: 0.75rem; margin: 0; padding: 0; list-style: none; }
.cards li { position: relative; padding: 0.875rem 1rem; background: var(--panel); border: 1px solid var(--line); border-radius: 0.75rem; }
.cards li:hover { border-color: var(--line-control); }
.cards a { color: var(--ink); font-weight: 500; text-decoration: none; }
.cards a::after { content: ""; position: absolute; inset: 0; border-radius: 0.75rem; }
.cards p { margin: 0.25rem 0 0; color: var(--ink-2); font-size: 0.8125rem; line-height: 1.5; }
.index, .operations, .failures, .members { margin: 0; padding: 0; list-style: none; }
.index li { display: grid; grid-template-columns: 11rem minmax(0, 1fr) auto; gap: 0.25rem 1rem; padding: 0.625rem 0; border-bottom: 1px solid var(--line); font-size: 0.875rem; }
.index span, .index small { color: var(--ink-2); }
.index small { color: var(--ink-3); }
.operations li { padding: 0.875rem 0; border-bottom: 1px solid var(--line); }
.operations p { margin: 0.25rem 0 0; color: var(--ink-2); font-size: 0.875rem; }
.operations a { text-decoration: none; }
.operations a:hover .path { text-decoration: underline; }
.route { background: none !important; padding: 0 !important; font-size: 0.875rem; color: var(--ink); overflow-wrap: anywhere; }
h1 .route { font-size: 1.25rem; letter-spacing: 0; font-weight: 500; }
.method { font-weight: 600; color: var(--accent); }
.method:is(.post, .put, .patch) { color: var(--good); }
.method.delete { color: var(--bad); }

.facts { display: grid; grid-template-columns: 6rem minmax(0, 1fr); gap: 0.375rem 1rem; margin: 1.25rem 0; padding: 0.875rem 1rem; font-size: 0.875rem; background: var(--panel); border: 1px solid var(--line); border-radius: 0.75rem; }
.facts dt { color: var(--ink-3); }
.facts dd { margin: 0; }
.members li { padding: 0.625rem 0; border-bottom: 1px solid var(--line); font-size: 0.875rem; }
.members .depth-1 { padding-left: 1rem; }
.members .depth-2 { padding-left: 2rem; }
.members p { margin: 0; color: var(--ink-2); }
.members p:first-child > code { color: var(--ink); background: none; padding: 0; font-weight: 600; }
.type { color: var(--ink-3); font-size: 0.8125rem; overflow-wrap: anywhere; }
.required { color: var(--warn); font-size: 0.8125rem; }
.failures li { display: grid; grid-template-columns: 2.5rem minmax(0, 15rem) minmax(0, 1fr); gap: 0 0.75rem; padding: 0.4375rem 0; border-bottom: 1px solid var(--line); font-size: 0.875rem; }
.failures .status { color: var(--ink-3); font-variant-numeric: tabular-nums; }
.failures .chip { margin-left: 0.5rem; }

.beside { position: sticky; top: calc(var(--bar) + 1.5rem); align-self: start; max-height: calc(100vh - var(--bar) - 2rem); overflow-y: auto; padding: 0.25rem; }
.beside h2 { margin: 0 0 0.5rem; font-size: 1rem; }
.samples fieldset { display: flex; gap: 0.25rem; margin: 0; padding: 0; border: 0; }
.samples input { position: absolute; opacity: 0; }
.samples label { padding: 0.25rem 0.75rem; color: var(--ink-2); font-size: 0.8125rem; border-radius: 0.5rem; cursor: pointer; }
.samples label:hover { background: var(--hover); }
.samples input:checked + label { background: var(--accent-soft); color: var(--accent-ink); font-weight: 500; }
.samples input:focus-visible + label { outline: 2px solid var(--accent); outline-offset: 2px; }
.sample { display: none; }
.sample .code pre { padding-right: 1rem; }
.sample .copy { top: -2.375rem; right: 0; }
.about > ul { padding-left: 1.25rem; }
.about > ul > li { margin: 0.375rem 0; }
.about > :is(.members, .failures) { padding: 0; }
.about > :is(.members, .failures) > li { margin: 0; }
.samples:has(#language-curl:checked) .sample.curl, .samples:has(#language-client:checked) .sample.client, .samples:has(#language-python:checked) .sample.python { display: block; }
.sample pre, #response pre { max-height: 24rem; overflow: auto; }
.try { margin-top: 1rem; padding: 1rem; background: var(--panel); border: 1px solid var(--line); border-radius: 0.75rem; }
.try p { margin: 0 0 0.75rem; }
.try label { display: block; margin-bottom: 0.25rem; color: var(--ink-2); font-size: 0.8125rem; }
input, textarea { width: 100%; padding: 0.375rem 0.625rem; font: inherit; font-size: 0.875rem; color: inherit; background: var(--ground); border: 1px solid var(--line-control); border-radius: 0.5rem; }
input[type=radio] { width: auto; }
textarea { font-family: var(--mono); font-size: 0.8125rem; resize: vertical; white-space: pre; overflow-x: auto; }
.try input { font-family: var(--mono); font-size: 0.8125rem; }
#response { margin-top: 1rem; }
#response p { margin: 0; font-size: 0.8125rem; font-weight: 500; }
#response[data-kind=good] p { color: var(--good); }
#response[data-kind=bad] p { color: var(--bad); }
#response pre { background: var(--sunken); }
main > footer { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; margin-top: 3rem; padding-top: 1.25rem; color: var(--ink-2); font-size: 0.875rem; border-top: 1px solid var(--line); }

@media (max-width: 74.99rem) {
  main.wide { display: block; max-width: 54rem; }
  .beside { position: static; max-height: none; margin-top: 2.5rem; padding: 0; }
}
@media (max-width: 59.99rem) {
  .frame { display: block; }
  .rail { display: none; }
  .contents { display: block; border-bottom: 1px solid var(--line); }
  .contents summary { padding: 0.75rem 1.5rem; font-size: 0.9375rem; font-weight: 500; cursor: pointer; }
  .contents nav { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: 0 1rem; padding: 0 0.875rem 1.25rem; }
  .contents nav section:first-child p { margin-top: 1.25rem; }
  nav a { padding-block: 0.5rem; }
  main, main.wide { margin: 0 auto; padding: 2rem 1.5rem; }
}
@media (max-width: 39.99rem) {
  .bar { padding: 0 1rem; }
  .brand span, .search kbd { display: none; }
  .search input { height: 2.75rem; padding-right: 0.75rem; }
  #results { top: 3.25rem; right: -0.5rem; width: calc(100vw - 1rem); }
  #results a { padding-block: 0.75rem; }
  .contents summary { padding-inline: 1rem; }
  main, main.wide { padding: 1.5rem 1rem 2rem; }
  h1 { font-size: 1.5rem; }
  h1 .route { font-size: 1.0625rem; }
  button, .button { padding-block: 0.5625rem; }
  .copy { padding-block: 0.25rem; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; }
  .index li { grid-template-columns: minmax(0, 1fr) auto; }
  .index span { grid-column: 1 / -1; grid-row: 2; }
  .failures li { grid-template-columns: 2.5rem minmax(0, 1fr); }
  .failures li > :nth-child(3) { grid-column: 2; color: var(--ink-2); }
  .facts { grid-template-columns: 1fr; gap: 0; }
  .facts dd { margin-bottom: 0.5rem; }
  .samples label { padding: 0.5625rem 0.75rem; }
}
@media (prefers-reduced-motion: no-preference) { html { scroll-behavior: smooth; } }
`.trimStart()
