/** Consent page: the client, its requested scopes and its spending limits. */
import { visibleName } from '../../../core/base/untrusted-text.ts'
import type { Scope } from '../../../people/identity/keys/grantable.ts'
import { GrantFields } from './grant-fields.tsx'
import { Brand, Shell } from './shell.tsx'
import { StepUpForms } from './step-up.tsx'

/** Longest host or scheme on the page. A host of the internet has at most 253 characters. */
const MAX_HOST_CHARACTERS = 253

/** @property clientName self-declared by the client and unverified. */
export interface ConsentProps {
  readonly clientName: string
  readonly clientId: string
  readonly redirectUri: string
  readonly person: string
  readonly accountId: string
  readonly scopes: readonly Scope[]
  readonly isSandbox: boolean
}

export function ConsentPage(props: ConsentProps) {
  const { clientName, clientId, redirectUri, person, accountId, scopes, isSandbox } = props
  const name = clientName === '' ? visibleName(extractHost(clientId), MAX_HOST_CHARACTERS) : clientName
  return (
    <Shell title="Allow access" script="consent" isWide={true} person={person}>
      <div class="asks">
        <div class="pair" aria-hidden="true">
          <span class="pair__mark">{extractInitials(name)}</span>
          <span class="pair__line" />
          <span class="pair__mark">
            <Brand />
          </span>
        </div>
        <h1 tabindex={-1}>
          Allow “<bdi>{name}</bdi>”?
        </h1>
        <p>
          It requests access to the account of <strong>{person}</strong>
          {isSandbox ? ' in this sandbox, where no money is real.' : '.'} You are sent back to{' '}
          <strong id="redirect">{visibleName(describePlace(redirectUri), MAX_HOST_CHARACTERS)}</strong>.
        </p>
      </div>
      <p class="warn">The name is not verified. Allow access only if you have just started this yourself.</p>
      <form id="consent" method="post" data-account={accountId}>
        <GrantFields scopes={scopes} />
        <div class="decide">
          <label class="choice">
            <input type="checkbox" name="keep-earlier" /> Keep earlier access of this application
          </label>
          <button type="submit" class="primary" disabled>
            Allow
          </button>
        </div>
      </form>
      <form id="refuse" method="post" data-account={accountId}>
        <button type="submit" disabled>
          Do not allow
        </button>
      </form>
      <StepUpForms />
      <details>
        <summary>Details of this request</summary>
        <dl>
          <dt>Client id</dt>
          <dd>{clientId}</dd>
          <dt>Your account</dt>
          <dd>{accountId}</dd>
        </dl>
      </details>
      <p class="hint">
        Access lasts up to a year. You can pause or revoke it at any time among your agent keys.
      </p>
    </Shell>
  )
}

/** Page for an authorization that was decided, has expired or belongs to another browser. */
export function ExpiredPage() {
  return (
    <Shell title="Nothing to allow" script="consent" wayOut={true}>
      <h1 tabindex={-1}>This request has expired</h1>
      <p>It was already decided, took longer than ten minutes, or was started in another browser.</p>
      <p>Start again from the application that sent you here.</p>
    </Shell>
  )
}

/** The host of a web URI; otherwise the scheme, which identifies the application. */
function describePlace(uri: string): string {
  if (/^https?:/i.test(uri) || !URL.canParse(uri)) return extractHost(uri)
  const { protocol, host } = new URL(uri)
  return host === '' ? protocol : `${protocol}//${host}`
}

function extractHost(uri: string): string {
  try {
    return new URL(uri).host || uri
  } catch {
    return uri
  }
}

/** At most two letters or digits, for the mark beside the name. */
function extractInitials(name: string): string {
  const words = name.match(/[\p{L}\p{N}]+/gu) ?? []
  return words
    .slice(0, 2)
    .map((word) => [...word][0]?.toUpperCase() ?? '')
    .join('')
}
