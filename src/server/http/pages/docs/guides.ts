/** The guides: the Markdown files in `docs/`, in reading order. */
import { existsSync, readFileSync } from 'node:fs'
import { projectRoot } from '../../../../core/base/project-root.ts'
import { type Rendered, renderMarkdown } from './markdown.ts'

/** The guides by group: file name without `.md`, and the short name in lists. */
export const guideGroups = [
  [
    'Start',
    [
      ['quick-start', 'Quick start'],
      ['going-live', 'Going live'],
    ],
  ],
  [
    'Agents',
    [
      ['agents', 'Connecting agents'],
      ['policies', 'Agents and policies'],
      ['approvals', 'Approvals'],
      ['people', 'People'],
      ['messages', 'Messages'],
      ['signing', 'Signing'],
    ],
  ],
  [
    'Money',
    [
      ['purchases', 'Buying'],
      ['recourse', 'Money back'],
      ['contacts', 'Contacts'],
      ['swaps', 'Swaps'],
      ['requests', 'Requests for money'],
      ['schedules', 'Schedules'],
      ['statements', 'Statements'],
      ['selling', 'Selling by x402'],
      ['cards', 'Cards and banking'],
      ['guide', 'People, compliance, investing'],
    ],
  ],
  [
    'Programs',
    [
      ['client', 'The client'],
      ['cli', 'The command line'],
      ['proxy', 'Programs without a wallet'],
      ['events', 'Events and webhooks'],
      ['specification', 'The specification'],
    ],
  ],
  [
    'Operation',
    [
      ['configuration', 'Configuration'],
      ['keys', 'Keys'],
      ['contracts', 'Chains and contracts'],
      ['operations', 'Operations'],
      ['from-nothing', 'From nothing to production'],
      ['capacity', 'Capacity'],
    ],
  ],
] as const

export interface Guide extends Rendered {
  readonly slug: string
  readonly group: string
  /** Short name in lists. */
  readonly name: string
  /** The Markdown, with the gateway's own origin. */
  readonly text: string
}

/** Origin in the files, which the site replaces by the gateway's own so that commands work as pasted. */
const WRITTEN_ORIGIN = 'http://127.0.0.1:8787'

/** Files that keep the origin: the signatures' test vector covers it, and the quick start needs a sandbox. */
const keepsOrigin = (slug: string, isSandbox: boolean) =>
  slug === 'signing' || (slug === 'quick-start' && !isSandbox)

/** Reads and renders all guides. */
export function readGuides({
  origin,
  isSandbox,
}: {
  readonly origin: string
  readonly isSandbox: boolean
}): readonly Guide[] {
  const listed = guideGroups.flatMap(([group, guides]) =>
    guides.map(([slug, name]) => ({ group, slug, name })),
  )
  const existing = listed.filter(({ slug }) => existsSync(locateGuide(slug)))
  const pages = new Map(existing.map(({ slug }) => [`${slug}.md`, `/docs/${slug}`]))
  return existing.map((guide) => {
    const text = readFileSync(locateGuide(guide.slug), 'utf8')
    const ours = keepsOrigin(guide.slug, isSandbox) ? text : text.replaceAll(WRITTEN_ORIGIN, origin)
    return { ...guide, text: ours, ...renderMarkdown(ours, (file) => pages.get(file) ?? null) }
  })
}

function locateGuide(slug: string): URL {
  return new URL(`docs/${slug}.md`, projectRoot())
}

/** The pages that a model should read, as links to their Markdown. @see https://llmstxt.org */
export function llmsText(guides: readonly Guide[], origin: string): string {
  const groups = guideGroups.map(([group]) => ({
    group,
    links: guides
      .filter((guide) => guide.group === group)
      .map(({ slug, title, lead }) => `- [${title}](${origin}/docs/${slug}.md): ${lead}`),
  }))
  return [
    '# Bursar',
    '',
    '> A gateway that lets AI agents spend money safely: a stablecoin wallet, bank accounts, cards, investing, swap quotes and compliance, over REST and MCP, under a spend policy per key.',
    '',
    `Agents connect to the MCP server at ${origin}/mcp; the tools it lists describe themselves. Programs read the OpenAPI document.`,
    ...groups
      .filter(({ links }) => links.length > 0)
      .flatMap(({ group, links }) => ['', `## ${group}`, '', ...links]),
    '',
    '## Reference',
    '',
    `- [OpenAPI 3.1](${origin}/api/openapi.json): every route with its input, answer and failures`,
    `- [Errors](${origin}/errors): every code, what it means and what to do`,
    '',
  ].join('\n')
}
