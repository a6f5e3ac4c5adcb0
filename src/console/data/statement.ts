/** The statement: pages of entries under filters, kept up to date by events. */
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ActivityEntry, Problem } from '../../client/operations.ts'
import { BursarProblem, BursarUnreachable } from '../../client/problem.ts'
import { bursar, isShutOut, signInAgain } from './gateway.ts'
import { joinPages } from './join-pages.ts'
import { saveFile } from './save-file.ts'
import { onEvent } from './stream.ts'

export interface StatementFilter {
  readonly kind?: ActivityEntry['kind']
  readonly direction?: ActivityEntry['direction']
  readonly status?: ActivityEntry['status']
  readonly agentId?: string
  /** Label of the task. */
  readonly task?: string
  readonly search?: string
  /** Start, ISO 8601 UTC. */
  readonly from?: string
}

export interface Statement {
  readonly status: 'loading' | 'ready' | 'failed'
  readonly entries: readonly ActivityEntry[]
  /** Null on the last page. */
  readonly nextCursor: string | null
  readonly error: unknown
  readonly more: () => Promise<void>
  readonly retry: () => void
}

const PAGE = 50
/** Gathers bursts of events into one request. */
const GATHER_MS = 60

/** Entries under a filter, newest first. New ones appear by themselves. */
export function useStatement(filter: StatementFilter): Statement {
  const key = JSON.stringify(filter)
  const [attempt, setAttempt] = useState(0)
  const [state, setState] = useState<Omit<Statement, 'more' | 'retry'>>(nothingYet)
  useEffect(() => {
    let isCurrent = true
    let timer: ReturnType<typeof setTimeout> | undefined
    const load = async () => {
      try {
        const { entries, nextCursor } = await bursar.activity.list({ ...filter, limit: PAGE })
        if (isCurrent)
          setState((before) => ({
            status: 'ready',
            ...joinPages(before, { entries, nextCursor }),
            error: null,
          }))
      } catch (error) {
        if (isShutOut(error)) signInAgain()
        if (isCurrent)
          setState((before) => ({ ...before, error, status: before.entries.length > 0 ? 'ready' : 'failed' }))
      }
    }
    setState(nothingYet)
    void load()
    const stop = onEvent(() => {
      clearTimeout(timer)
      timer = setTimeout(() => void load(), GATHER_MS)
    })
    return () => {
      isCurrent = false
      clearTimeout(timer)
      stop()
    }
  }, [key, attempt])
  const shown = useRef(key)
  shown.current = key
  const more = async () => {
    if (state.nextCursor === null) return
    const page = await bursar.activity.list({ ...filter, limit: PAGE, cursor: state.nextCursor })
    // The filter was changed meanwhile: its entries are others.
    if (shown.current !== key) return
    setState((before) => ({
      ...before,
      entries: [
        ...before.entries,
        ...page.entries.filter(({ id }) => before.entries.every((one) => one.id !== id)),
      ],
      nextCursor: page.nextCursor,
    }))
  }
  return { ...state, more, retry: () => setAttempt(attempt + 1) }
}

const nothingYet = { status: 'loading', entries: [], nextCursor: null, error: null } as const

/** More pages than this are not for a browser. */
const MAX_PAGES = 200
const PAGE_ENTRIES = 100
const MAX_WAIT_SEC = 60

/**
 * Downloads the statement under a filter as CSV, page by page.
 * @returns the number of entries that it holds if older ones are left out, otherwise null
 * @throws BursarProblem or BursarUnreachable when a page fails: half a statement is never saved
 */
export async function downloadCsv(filter: StatementFilter): Promise<number | null> {
  const parts: string[] = []
  const query = new URLSearchParams({ ...filter, limit: String(PAGE_ENTRIES) })
  let target: string | undefined = `/api/activity?${query}`
  for (let page = 0; target !== undefined && page < MAX_PAGES; page += 1) {
    const response = await fetchCsvPage(target)
    const text = await response.text()
    parts.push(page === 0 ? text : text.slice(text.indexOf('\n') + 1))
    target = /<([^>]+)>; rel="next"/.exec(response.headers.get('link') ?? '')?.[1]
  }
  saveFile(`bursar-${new Date().toISOString().slice(0, 10)}.csv`, 'text/csv', parts)
  return target === undefined ? null : MAX_PAGES * PAGE_ENTRIES
}

/** Reads one page, and waits when the gateway says that it is asked too often. */
async function fetchCsvPage(target: string): Promise<Response> {
  for (;;) {
    const response = await fetch(target, { headers: { accept: 'text/csv' } }).catch((cause) => {
      throw new BursarUnreachable('The statement did not arrive.', cause)
    })
    if (response.ok) return response
    const seconds = Number(response.headers.get('retry-after') ?? 1)
    if (response.status !== 429 || !(seconds <= MAX_WAIT_SEC)) throw await readProblem(response)
    await new Promise((resolve) => setTimeout(resolve, seconds * 1000))
  }
}

async function readProblem(response: Response): Promise<Error> {
  const body: Problem | null = await response.json().catch(() => null)
  return body === null
    ? new BursarUnreachable('Something else than the gateway answered.')
    : new BursarProblem(body)
}
