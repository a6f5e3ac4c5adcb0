/** Consent page: the client, its requested scopes and its spending limits. */
import type { Scope } from '../../identity/keys/grantable.ts'
import { GrantFields } from './grant-fields.tsx'
import { Shell } from './shell.tsx'
import { StepUpForms } from './step-up.tsx'

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
  return (
    <Shell title="Allow access" script="consent">
      <h1 tabindex={-1}>Allow “{clientName === '' ? hostOf(clientId) : clientName}”?</h1>
      <p>
        It requests access to the account of <strong>{person}</strong>
        {isSandbox ? ' in this sandbox, where no money is real.' : '.'}
      </p>
      <dl>
        <dt>Redirects to</dt>
        <dd id="redirect">{whereOf(redirectUri)}</dd>
        <dt>Client id</dt>
        <dd class="hint">{clientId}</dd>
        <dt>Your account</dt>
        <dd class="hint">{accountId}</dd>
      </dl>
      <p class="hint">The name is not verified. Allow access only if you have just started this yourself.</p>
      <form id="consent" method="post" data-account={accountId}>
        <GrantFields scopes={scopes} />
        <label class="choice">
          <input type="checkbox" name="keep-earlier" /> Keep earlier access of this application
        </label>
        <button type="submit" class="primary">
          Allow
        </button>
      </form>
      <form id="refuse" method="post" data-account={accountId}>
        <button type="submit">Do not allow</button>
      </form>
      <StepUpForms />
      <p class="hint">
        Access lasts up to a year. You can pause or revoke it at any time among your agent keys.
      </p>
    </Shell>
  )
}

/** Page for an authorization that was decided, has expired or belongs to another browser. */
export function ExpiredPage() {
  return (
    <Shell title="Nothing to allow" script="consent">
      <h1 tabindex={-1}>This request has expired</h1>
      <p>It was already decided, took longer than ten minutes, or was started in another browser.</p>
      <p>Start again from the application that sent you here.</p>
    </Shell>
  )
}

/** The host of a web URI; otherwise the scheme, which identifies the application. */
function whereOf(uri: string): string {
  if (/^https?:/i.test(uri) || !URL.canParse(uri)) return hostOf(uri)
  const { protocol, host } = new URL(uri)
  return host === '' ? protocol : `${protocol}//${host}`
}

function hostOf(uri: string): string {
  try {
    return new URL(uri).host || uri
  } catch {
    return uri
  }
}
