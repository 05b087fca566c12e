"""How the page looks on a screen, on a phone and in print; the fonts are those of the reader's machine."""

STYLESHEET = """
:root { --ink: #222222; --grey: #595959; --faint: #dddddd; --blue: #0072b2; --paper: #ffffff; --wash: #f5f8fa; }
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0 auto; max-width: 78rem; padding: 2.5rem 1.5rem 4rem; color: var(--ink); background: var(--paper);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", Arial, sans-serif;
}
h1, h2, h3 { line-height: 1.2; text-wrap: balance; }
h1 { margin: 0 0 .3rem; font-size: 2rem; letter-spacing: -.01em; }
h2 { margin: 3.5rem 0 1.2rem; padding-top: .7rem; border-top: 3px solid var(--blue); font-size: 1.5rem; }
h3 { margin: 0 0 .6rem; font-size: 1.05rem; }
p { margin: 0 0 1rem; }
a { color: var(--blue); text-underline-offset: .15em; }
a:focus-visible, .scroll:focus-visible { outline: 2px solid var(--blue); outline-offset: 2px; }
.subtitle { color: var(--grey); max-width: 46rem; }

.notice { margin: 1.5rem 0; padding: .8rem 1.1rem; border-left: 4px solid #e69f00; background: #fdf6e7; }
.notice p { margin: 0; }
.facts { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.5rem; margin: 1.5rem 0; }
.facts dt { color: var(--grey); }
.facts dd { margin: 0; }

nav { margin: 2rem 0; padding: 1.1rem 1.4rem; background: var(--wash); border-radius: .4rem; }
nav h2 { margin: 0 0 .7rem; padding: 0; border: 0; font-size: 1.05rem; }
nav > ul { columns: 20rem; column-gap: 2.5rem; }
nav ul { margin: 0; padding: 0; list-style: none; }
nav > ul > li { break-inside: avoid; padding-bottom: .6rem; font-weight: 600; }
nav ul ul { font-weight: 400; font-size: .92rem; }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }

.exhibits { display: flex; flex-wrap: wrap; gap: 2.5rem; align-items: flex-start; }
.exhibit { flex: 1 1 100%; min-width: 0; max-width: 100%; }
.exhibit.narrow { flex: 0 1 auto; }
figure { margin: 0; }
figcaption { max-width: 60rem; margin-top: .6rem; color: var(--grey); font-size: .85rem; line-height: 1.45; }
img { display: block; max-width: 100%; height: auto; }
.files { margin: .4rem 0 0; color: var(--grey); font-size: .85rem; }

.scroll { overflow-x: auto; }
table { border-collapse: separate; border-spacing: 0; border-top: 2px solid; border-bottom: 2px solid; }
table { font-size: .85rem; line-height: 1.4; font-variant-numeric: tabular-nums; }
th, td { padding: .32rem .7rem; text-align: left; vertical-align: top; white-space: nowrap; }
thead th { border-bottom: 1px solid; vertical-align: bottom; white-space: normal; }
th[scope="row"] { position: sticky; left: 0; background: var(--paper); font-weight: 400; }
th:first-child, td:first-child { padding-left: .2rem; }
tbody tr + tr > * { border-top: 1px solid var(--faint); }
tbody tr:hover > * { background: var(--wash); }
th.number, td.number { text-align: right; }
td.text, th.text { min-width: 9rem; white-space: normal; }
table:has(td.text) td:not(.number) { min-width: 6rem; white-space: normal; }
.note { max-width: 60rem; margin: .8rem 0 0; font-size: .9rem; }

footer { margin-top: 4rem; padding-top: 1rem; border-top: 1px solid var(--faint); }
footer { color: var(--grey); font-size: .85rem; }

@media (max-width: 40rem) {
  body { padding: 1.25rem 1rem 3rem; }
  h1 { font-size: 1.6rem; }
  th[scope="row"].text { min-width: 8rem; max-width: 9rem; }
}

@media print {
  @page { size: landscape; margin: 13mm; }
  html { font-size: 9.5pt; }
  body { max-width: none; padding: 0; }
  nav, .files { display: none; }
  a { color: inherit; text-decoration: none; }
  h2 { break-after: avoid; margin-top: 2rem; }
  h3 { break-after: avoid; }
  tr, img, .notice { break-inside: avoid; }
  thead { display: table-header-group; }
  .exhibits { display: block; }
  .exhibit { margin-bottom: 2rem; }
  .scroll { overflow: visible; }
  table { font-size: 7pt; }
  th, td { padding: .15rem .35rem; }
  td.text, th.text, table:has(td.text) td:not(.number) { min-width: 0; }
  th[scope="row"] { position: static; }
  img { max-height: 15cm; width: auto; }
}
"""
