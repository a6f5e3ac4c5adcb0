/**
 * Markdown of our own files and descriptions as HTML. Raw HTML in it is shown as text, and links lead to known pages,
 * anchors or https only.
 */
import { Marked, type Token } from 'marked'
import { isFailureCode } from '../../../../core/failures/failure.ts'

/** Part of a page below one heading, for the search. @property anchor empty before the first heading. */
export interface Section {
  readonly heading: string
  readonly anchor: string
  readonly text: string
}

export interface Rendered {
  readonly title: string
  /** First paragraph as plain text. */
  readonly lead: string
  /** HTML without the title. */
  readonly html: string
  readonly sections: readonly Section[]
}

/** Renders a file. @param linkTo page of a link to another file; null: the site has none, and the link becomes text. */
export function renderMarkdown(text: string, linkTo: (file: string) => string | null): Rendered {
  const seen = new Map<string, number>()
  const marked = createMarked(linkTo, (heading) => {
    const anchor = toAnchor(heading)
    const count = seen.get(anchor) ?? 0
    seen.set(anchor, count + 1)
    return count === 0 ? anchor : `${anchor}-${count}`
  })
  const [first, ...tokens] = marked.lexer(text)
  if (first?.type !== 'heading') throw new Error('A page of the documentation starts with its title')
  const html = marked.parser(tokens)
  return {
    title: plain(first),
    lead: plain(tokens.find(({ type }) => type === 'paragraph')),
    html: html
      .replace(/<thead>\s*<tr>\s*(?:<th><\/th>\s*)+<\/tr>\s*<\/thead>/g, '')
      .replaceAll('<table>', '<div class="scroll" tabindex="0" role="region" aria-label="Table"><table>')
      .replaceAll('</table>', '</table></div>')
      .replaceAll('<pre>', '<pre tabindex="0">'),
    sections: splitSections(tokens),
  }
}

/** Renders a description: one paragraph, whose failure codes link to their pages. */
export function renderInline(text: string): string {
  return String(createMarked(() => null, toAnchor).parseInline(text))
}

function createMarked(
  linkTo: (file: string) => string | null,
  nameAnchor: (heading: string) => string,
): Marked {
  return new Marked({
    gfm: true,
    renderer: {
      heading(token) {
        const anchor = nameAnchor(plain(token))
        return `<h${token.depth} id="${anchor}"><a href="#${anchor}">${this.parser.parseInline(token.tokens)}</a></h${token.depth}>\n`
      },
      link({ href, tokens }) {
        const inner = this.parser.parseInline(tokens)
        const target = /^(https:\/\/|#)/.test(href) ? href : resolveTarget(href, linkTo)
        return target === null ? inner : `<a href="${escapeHtml(target)}">${inner}</a>`
      },
      codespan({ text }) {
        const code = `<code>${escapeHtml(text)}</code>`
        return isFailureCode(text) ? `<a href="/errors/${text}">${code}</a>` : code
      },
      html: ({ text }) => (/^<!--[^>]*-->\s*$/.test(text) ? '' : escapeHtml(text)),
      image: ({ text }) => escapeHtml(text),
    },
  })
}

function resolveTarget(href: string, linkTo: (file: string) => string | null): string | null {
  const [file = '', anchor] = href.split('#')
  const page = linkTo(file)
  return page === null || anchor === undefined ? page : `${page}#${anchor}`
}

function splitSections(tokens: readonly Token[]): Section[] {
  const sections: { heading: string; anchor: string; text: string }[] = [
    { heading: '', anchor: '', text: '' },
  ]
  for (const token of tokens) {
    const heading = token.type === 'heading' ? plain(token) : null
    const last = sections.at(-1)
    if (heading !== null) sections.push({ heading, anchor: toAnchor(heading), text: '' })
    else if (last !== undefined) last.text += ` ${token.raw}`
  }
  return sections.map((one) => ({
    ...one,
    text: one.text
      .replace(/[`*|]|\]\([^)]*\)|\[|-{3,}|\s+/g, ' ')
      .replace(/ +/g, ' ')
      .trim(),
  }))
}

/** Text of a token without marks. */
function plain(token: Token | undefined): string {
  if (token === undefined) return ''
  if ('tokens' in token && Array.isArray(token.tokens)) return token.tokens.map(plain).join('')
  return 'text' in token && typeof token.text === 'string' ? token.text.replace(/\s+/g, ' ') : ''
}

/** The anchor that code hosts give a heading. */
function toAnchor(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N} _-]/gu, '')
    .replaceAll(' ', '-')
}

function escapeHtml(text: string): string {
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('>', '&gt;')
    .replaceAll('"', '&quot;')
}
