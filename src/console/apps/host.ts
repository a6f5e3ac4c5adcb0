/**
 * The connection of a view to the host that shows it: what was called, what came back, and pages that the host opens.
 * A view has no credential and no network: all that it knows was a tool's answer.
 * @see https://github.com/modelcontextprotocol/ext-apps/blob/main/specification/2026-01-26/apps.mdx
 */
import { App, applyDocumentTheme } from '@modelcontextprotocol/ext-apps'
import { signal } from '@preact/signals'

export type Members = Readonly<Record<string, unknown>>

/** @property problem of a call that failed, as over REST. */
export type Outcome =
  | { readonly status: 'waiting' | 'canceled' }
  | { readonly status: 'answered'; readonly answer: Members }
  | { readonly status: 'failed'; readonly problem: Members }

/** Arguments of the call, once the host told them. */
export const given = signal<Members>({})
export const outcome = signal<Outcome>({ status: 'waiting' })

const app = new App({ name: 'bursar', version: '1' })

/** The gateway's own address, written into the view when it is served. */
const origin = document.body.dataset.origin ?? ''

/** Connects, and keeps {@link given} and {@link outcome}. Handlers come first: hosts send as soon as they are answered. */
export async function connect(): Promise<void> {
  app.ontoolinput = ({ arguments: input }) => {
    given.value = input ?? {}
  }
  app.ontoolresult = (result) => {
    outcome.value = readResult(result)
  }
  app.ontoolcancelled = () => {
    outcome.value = { status: 'canceled' }
  }
  app.onhostcontextchanged = applyContext
  await app.connect()
  applyContext(app.getHostContext() ?? {})
}

function applyContext({ theme }: { readonly theme?: 'light' | 'dark' | undefined }): void {
  if (theme !== undefined) applyDocumentTheme(theme)
}

/** Opens a page of the gateway in the person's browser, and no page of anybody else. @returns whether the host did */
export async function openPage(path: string): Promise<boolean> {
  const url = `${origin}${path}`
  if (origin === '' || !path.startsWith('/') || new URL(url).origin !== origin) return false
  const { isError } = await app.openLink({ url }).catch(() => ({ isError: true }))
  return isError !== true
}

/** The address of a page of the gateway, for reading and copying where a host opens none. */
export const pageAddress = (path: string): string => `${origin}${path}`

/** Reads again by a tool that only reads. @returns undefined where the host lets views call none, or it failed */
export async function readAgain(name: string, input: Members): Promise<Members | undefined> {
  if (app.getHostCapabilities()?.serverTools === undefined) return undefined
  const read = await app.callServerTool({ name, arguments: { ...input } }).catch(() => undefined)
  const found = read === undefined ? undefined : readResult(read)
  return found?.status === 'answered' ? found.answer : undefined
}

interface Result {
  readonly isError?: boolean | undefined
  readonly structuredContent?: Members | undefined
  readonly content: readonly { readonly type: string; readonly text?: unknown }[]
}

/** An answer is structured; a problem is text, because older clients judge all structure by the tool's schema. */
function readResult({ isError, structuredContent, content }: Result): Outcome {
  const members = structuredContent ?? parseMembers(content.find(({ type }) => type === 'text')?.text)
  return isError === true ? { status: 'failed', problem: members } : { status: 'answered', answer: members }
}

function parseMembers(text: unknown): Members {
  try {
    const value: unknown = JSON.parse(String(text))
    return typeof value === 'object' && value !== null ? { ...value } : {}
  } catch {
    return {}
  }
}
