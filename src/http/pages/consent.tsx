/** The consent page: who asks, for what, and how much it may spend. Scopes that change anything are never ticked beforehand. */
import {
  moneyScopes,
  policyPresets,
  readScopes,
  type Scope,
  scopes as scopeTexts,
} from '../../identity/keys/grantable.ts'
import { Shell } from './shell.tsx'
import { StepUpForms } from './step-up.tsx'

/** What is asked. @property clientName as the client calls itself; nobody has checked it. */
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

/** Asks the owner. */
export function ConsentPage(props: ConsentProps) {
  const { clientName, clientId, redirectUri, person, accountId, scopes, isSandbox } = props
  const reading = scopes.filter((one) => read.has(one))
  const spending = scopes.filter((one) => money.has(one))
  const writing = scopes.filter((one) => !read.has(one) && !money.has(one))
  return (
    <Shell title="Allow access" script="consent">
      <h1 tabindex={-1}>Allow “{clientName === '' ? hostOf(clientId) : clientName}”?</h1>
      <p>
        It asks to act for <strong>{person}</strong>
        {isSandbox ? ', in this sandbox, where no money is real.' : '.'}
      </p>
      <dl>
        <dt>Answers go to</dt>
        <dd id="redirect">{whereOf(redirectUri)}</dd>
        <dt>Known as</dt>
        <dd class="hint">{clientId}</dd>
        <dt>Your account</dt>
        <dd class="hint">{accountId}</dd>
      </dl>
      <p class="hint">
        The name is its own claim: nobody has checked it. Say no unless you have just started this yourself.
      </p>
      <form id="consent" method="post" data-account={accountId}>
        <fieldset>
          <legend>It may see</legend>
          {reading.length === 0 && <p class="hint">Nothing was asked for.</p>}
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
          <input type="checkbox" name="keep-earlier" /> Also keep what this application was allowed before
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
        It lasts a year at most, and you can pause or end it at any time among your agents’ keys.
      </p>
    </Shell>
  )
}

/** Says that there is nothing to decide any more. */
export function EndedPage() {
  return (
    <Shell title="Nothing to allow" script="consent">
      <h1 tabindex={-1}>This request has ended</h1>
      <p>It was answered, took longer than ten minutes, or was begun in another browser.</p>
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
      <p>How much, in US dollars:</p>
      <div class="others">
        {policyPresets.map(({ name, title, perTransaction, daily, approvalAbove }) => (
          <button
            type="button"
            data-preset={name}
            data-per-transaction={perTransaction}
            data-daily={daily}
            data-approval-above={approvalAbove ?? ''}
          >
            {title}: ${perTransaction} at a time, ${daily} a day,{' '}
            {approvalAbove === null ? 'never asked' : `asked above $${approvalAbove}`}
          </button>
        ))}
      </div>
      <AmountField id="per-transaction" label="At most at a time" value={first?.perTransaction} />
      <AmountField id="daily" label="At most a day (UTC)" value={first?.daily} />
      <AmountField
        id="approval-above"
        label="Ask me first above (leave empty: never)"
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

/** The host on the web; elsewhere the scheme says whose application it is. */
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
