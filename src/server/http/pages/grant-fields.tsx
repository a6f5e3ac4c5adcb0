/**
 * Scopes and spending limits that an owner chooses for a key. Scopes that change data or spend money are never
 * preselected.
 */
import {
  moneyScopes,
  policyPresets,
  presetRepeats,
  readScopes,
  type Scope,
  scopes as scopeTexts,
} from '../../../people/identity/keys/grantable.ts'

const money: ReadonlySet<string> = new Set(moneyScopes)
const read: ReadonlySet<string> = new Set(readScopes)

export function GrantFields({ scopes }: { readonly scopes: readonly Scope[] }) {
  const reading = scopes.filter((one) => read.has(one))
  const spending = scopes.filter((one) => money.has(one))
  const writing = scopes.filter((one) => !read.has(one) && !money.has(one))
  return (
    <>
      <p id="planned" class="hint" hidden>
        Filled in with what you have just chosen for “<bdi id="planned-name" />” in the console. Check that
        this is that agent.
      </p>
      <fieldset class="grants" aria-label="It may see">
        <details>
          <summary>It may see {reading.length === 0 ? 'nothing' : readingInWords(reading)}</summary>
          {reading.map((scope) => (
            <ScopeBox scope={scope} isTicked={true} />
          ))}
        </details>
      </fieldset>
      {writing.length > 0 && (
        <fieldset class="grants">
          <legend>It may change</legend>
          {writing.map((scope) => (
            <ScopeBox scope={scope} isTicked={false} />
          ))}
        </fieldset>
      )}
      {spending.length > 0 && (
        <fieldset class="grants">
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

/** Names of what a reading scope shows. */
const subjects: Readonly<Record<string, string>> = {
  'wallets:read': 'the wallet',
  'banking:read': 'bank accounts',
  'cards:read': 'cards',
  'investing:read': 'investments',
  'swaps:quote': 'swap quotes',
  'requests:read': 'its own requests for money',
  'events:read': 'its own events',
}

function readingInWords(scopes: readonly Scope[]): string {
  const words = scopes.map((scope) => subjects[scope] ?? scopeTexts[scope])
  return words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} and ${words.at(-1)}`
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
    <div
      id="policy"
      class="limits"
      data-repeat-count={presetRepeats.count}
      data-repeat-sec={presetRepeats.perSec}
    >
      <p class="limits__title" id="limits-title">
        Within these limits
      </p>
      {/* biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out as a grid of cards. */}
      <div class="presets" role="group" aria-labelledby="limits-title">
        {policyPresets.map(({ name, title, perTransaction, daily, weekly, monthly, approvalAbove }) => (
          <button
            type="button"
            disabled
            aria-pressed={name === first?.name ? 'true' : 'false'}
            data-preset={name}
            data-per-transaction={perTransaction}
            data-daily={daily}
            data-weekly={weekly}
            data-monthly={monthly}
            data-approval-above={approvalAbove ?? ''}
          >
            <span>{title}</span>
            <b>${groupDigits(daily)} a day</b>
            <small>${groupDigits(perTransaction)} a payment</small>
            <small>
              ${groupDigits(weekly)} a week, ${groupDigits(monthly)} a month
            </small>
            <small>{approvalAbove === null ? 'Never asks you' : `Asks you above $${approvalAbove}`}</small>
          </button>
        ))}
      </div>
      <details>
        <summary>Set the limits yourself</summary>
        <div class="fields">
          <AmountField id="per-transaction" label="Limit per payment, in USD" value={first?.perTransaction} />
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
      </details>
      <p class="hint">
        After the same payment {presetRepeats.count} times within {presetRepeats.perSec / 60} minutes it stops
        and asks you.
      </p>
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
    <div>
      <label for={id}>{label}</label>
      <input
        id={id}
        name={id}
        inputmode="decimal"
        pattern="[0-9]{1,12}(\.[0-9]{1,6})?"
        value={value}
        required={!isOptional}
      />
    </div>
  )
}

/** `1500` → `1,500`. */
function groupDigits(amount: string): string {
  return amount.replace(/\B(?=(\d{3})+$)/g, ',')
}
