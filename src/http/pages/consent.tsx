/**
 * Consent page: the client, its requested scopes and its spending limits. Scopes that change data or spend money are
 * never preselected.
 */
import {
  moneyScopes,
  policyPresets,
  readScopes,
  type Scope,
  scopes as scopeTexts,
} from '../../identity/keys/grantable.ts'
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

const money: ReadonlySet<string> = new Set(moneyScopes)
const read: ReadonlySet<string> = new Set(readScopes)

export function ConsentPage(props: ConsentProps) {
  const { clientName, clientId, redirectUri, person, accountId, scopes, isSandbox } = props
  const reading = scopes.filter((one) => read.has(one))
  const spending = scopes.filter((one) => money.has(one))
  const writing = scopes.filter((one) => !read.has(one) && !money.has(one))
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
        <fieldset>
          <legend>It may see</legend>
          {reading.length === 0 && <p class="hint">Nothing requested.</p>}
          {reading.map((scope) => (
            <ScopeBox scope={scope} isTicked={true} />
          ))}
        </fieldset>
        {writing.length > 0 && (
          <fieldset>
            <legend>It may change</legend>
            {writing.map((scope) => (
              <ScopeBox scope={scope} isTicked={false} />
            ))}
          </fieldset>
        )}
        {spending.length > 0 && (
          <fieldset>
            <legend>It may spend</legend>
            {spending.map((scope) => (
              <ScopeBox scope={scope} isTicked={false} />
            ))}
            <PolicyFields />
          </fieldset>
        )}
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

function ScopeBox({ scope, isTicked }: { readonly scope: Scope; readonly isTicked: boolean }) {
  return (
    <label class="choice">
      <input type="checkbox" name="scope" value={scope} checked={isTicked} /> {scopeTexts[scope]}
    </label>
  )
}

function PolicyFields() {
  const [first] = policyPresets
  return (
    <div id="policy">
      <p>Spending limits in US dollars:</p>
      <div class="others">
        {policyPresets.map(({ name, title, perTransaction, daily, weekly, monthly, approvalAbove }) => (
          <button
            type="button"
            data-preset={name}
            data-per-transaction={perTransaction}
            data-daily={daily}
            data-weekly={weekly}
            data-monthly={monthly}
            data-approval-above={approvalAbove ?? ''}
          >
            {title}: ${perTransaction} per payment, ${daily} per day, ${weekly} per week, ${monthly} per
            month, {approvalAbove === null ? 'no approval' : `approval above $${approvalAbove}`}
          </button>
        ))}
      </div>
      <AmountField id="per-transaction" label="Limit per payment" value={first?.perTransaction} />
      <AmountField id="daily" label="Limit per day (UTC)" value={first?.daily} />
      <AmountField
        id="weekly"
        label="Limit per week, from Monday (empty: none)"
        value={first?.weekly}
        isOptional={true}
      />
      <AmountField
        id="monthly"
        label="Limit per month (empty: none)"
        value={first?.monthly}
        isOptional={true}
      />
      <AmountField
        id="approval-above"
        label="Ask for approval above (empty: never)"
        value={first?.approvalAbove ?? ''}
        isOptional={true}
      />
    </div>
  )
}

function AmountField({
  id,
  label,
  value = '',
  isOptional = false,
}: {
  readonly id: string
  readonly label: string
  readonly value?: string | undefined
  readonly isOptional?: boolean
}) {
  return (
    <>
      <label for={id}>{label}</label>
      <input
        id={id}
        name={id}
        inputmode="decimal"
        pattern="[0-9]{1,12}(\.[0-9]{1,6})?"
        value={value}
        required={!isOptional}
      />
    </>
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
