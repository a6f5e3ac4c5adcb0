/** The search index: sections of guides, operations and error codes. Searched in the browser. */
import { failureCodes, failures } from '../../../../core/failures/failure.ts'
import { failureGuide } from '../../../../core/failures/failure-guide.ts'
import type { Guide } from './guides.ts'
import type { Tag } from './operations.ts'

/** @property about where it belongs, in words. @property text further words that find it. */
export interface Found {
  readonly kind: 'guide' | 'operation' | 'error'
  readonly title: string
  readonly about: string
  readonly href: string
  readonly text: string
}

export function searchIndex(guides: readonly Guide[], tags: readonly Tag[]): readonly Found[] {
  return [
    ...guides.flatMap(({ name, slug, sections }) =>
      sections.map(({ heading, anchor, text }) => ({
        kind: 'guide' as const,
        title: heading === '' ? name : heading,
        about: heading === '' ? 'Guide' : name,
        href: anchor === '' ? `/docs/${slug}` : `/docs/${slug}#${anchor}`,
        text,
      })),
    ),
    ...tags.flatMap(({ name, operations }) =>
      operations.map(({ id, method, path, summary, href, parameters, body }) => ({
        kind: 'operation' as const,
        title: `${method} ${path}`,
        about: summary,
        href,
        text: [id, name, ...[...parameters, ...body].map((one) => one.name)].join(' '),
      })),
    ),
    ...failureCodes.map((code) => ({
      kind: 'error' as const,
      title: code,
      about: `${failures[code].status} ${failures[code].title}`,
      href: `/errors/${code}`,
      text: `${failureGuide[code].meaning} ${failureGuide[code].remedy}`,
    })),
  ]
}
