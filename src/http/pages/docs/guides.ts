/** The guides: the Markdown files in `docs/`, in reading order. */
import { existsSync, readFileSync } from 'node:fs'
import { projectRoot } from '../../../base/project-root.ts'
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
      ['signing', 'Signing'],
    ],
  ],
  [
    'Money',
    [
      ['purchases', 'Buying'],
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
      ['events', 'Events and webhooks'],
    ],
  ],
  [
    'Operation',
    [
      ['configuration', 'Configuration'],
      ['contracts', 'Chains and contracts'],
      ['operations', 'Operations'],
    ],
  ],
] as const

export interface Guide extends Rendered {
  readonly slug: string
  readonly group: string
  /** Short name in lists. */
  readonly name: string
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
  const existing = listed.filter(({ slug }) => existsSync(fileOf(slug)))
  const pages = new Map(existing.map(({ slug }) => [`${slug}.md`, `/docs/${slug}`]))
  return existing.map((guide) => {
    const text = readFileSync(fileOf(guide.slug), 'utf8')
    const ours = keepsOrigin(guide.slug, isSandbox) ? text : text.replaceAll(WRITTEN_ORIGIN, origin)
    return { ...guide, ...renderMarkdown(ours, (file) => pages.get(file) ?? null) }
  })
}

function fileOf(slug: string): URL {
  return new URL(`docs/${slug}.md`, projectRoot())
}
