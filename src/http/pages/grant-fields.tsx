/**
 * Scopes and spending limits that an owner chooses for a key. Scopes that change data or spend money are never
 * preselected.
 */
import {
  moneyScopes,
  policyPresets,
  readScopes,
  type Scope,
  scopes as scopeTexts,
} from '../../identity/keys/grantable.ts'

const money: ReadonlySet<string> = new Set(moneyScopes)
const read: ReadonlySet<string> = new Set(readScopes)

export function GrantFields({ scopes }: { readonly scopes: readonly Scope[] }) {
  const reading = scopes.filter((one) => read.has(one))
  const spending = scopes.filter((one) => money.has(one))
  const writing = scopes.filter((one) => !read.has(one) && !money.has(one))
  return (
    <>
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
    </>
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
