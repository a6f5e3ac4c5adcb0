/** A decision on a spend: verdict, the rules in words with their numbers, and the signed receipt. */
import type { Decision } from '../../client/operations.ts'
import { formatUsd } from '../words/money.ts'
import { nameOfChain, shortAddress } from '../words/names.ts'
import { plainText, shortText } from '../words/plain-text.ts'
import { capital, describeVerdict, describeViolation, nameOfCategory } from '../words/policy.ts'
import { formatMoment, formatWhen } from '../words/time.ts'
import { Amount } from './amount.tsx'
import type { IconName } from './icon.tsx'
import { IconGlyph, Status } from './marks.tsx'
import { Untrusted } from './quote.tsx'
import { Receipt } from './receipt.tsx'

const marks: Readonly<Record<string, readonly [icon: IconName, kind: 'in' | 'bad' | '4']>> = {
  allow: ['check', 'in'],
  deny: ['close', 'bad'],
  insufficient_funds: ['close', 'bad'],
  approval_required: ['clock', '4'],
}

/** Short name of what a decision was on: the merchant, the payee or the way of paying. */
export function nameSubject({ merchant, counterparty, category, operation }: Decision): string {
  if (merchant !== null) return shortText(merchant)
  if (counterparty !== null) return shortText(shortAddress(counterparty.replace(/^merchant:/, '')))
  return category === null ? plainText(operation) : nameOfCategory(category)
}

/** A row that opens to the whole decision. */
export function DecisionRow({ decision }: { readonly decision: Decision }) {
  const { verdict, amount, asset, at, violations } = decision
  const [icon, kind] = marks[verdict] ?? (['activity', '4'] as const)
  const isVoid = verdict === 'deny' || verdict === 'insufficient_funds'
  return (
    <li>
      <details class="decision">
        <summary class="item">
          <IconGlyph name={icon} kind={kind} />
          <span class="item__main">
            <span class="item__name">
              <span class="trim">
                <Untrusted>{nameSubject(decision)}</Untrusted>
              </span>
            </span>
            <span class="item__sub wrap">{describeVerdict(verdict, violations)}</span>
          </span>
          <span class="item__end">
            {amount !== null && (
              <Amount amount={amount} {...(asset === null ? {} : { asset })} isVoid={isVoid} />
            )}
            <span class="small faint">{formatWhen(at)}</span>
          </span>
        </summary>
        <div class="decision__open">
          <DecisionView decision={decision} />
        </div>
      </details>
    </li>
  )
}

/** Everything about a decision, for its details in activity, on an agent's page and on an approval. */
export function DecisionView({ decision }: { readonly decision: Decision }) {
  const { verdict, violations, usd, category, counterparty, merchant, mcc, chain, policyVersion } = decision
  const facts: readonly (readonly [name: string, value: string | null, isMono?: boolean])[] = [
    ['Worth', usd === null ? null : formatUsd(usd)],
    ['Way of paying', category === null ? null : nameOfCategory(category)],
    ['Merchant', merchant === null ? null : plainText(merchant)],
    ['Kind of shop', mcc],
    ['Payee', counterparty === null ? null : plainText(counterparty), true],
    ['Chain', chain === null ? null : nameOfChain(chain)],
    ['Policy', policyVersion === null ? null : `Version ${policyVersion}`],
    ['At', formatMoment(decision.at)],
    ['Decision', decision.decisionId, true],
  ]
  return (
    <div class="stack">
      <div class="row row--wrap">
        <Status status={verdict} />
        {violations.length === 0 && verdict === 'allow' && (
          <span class="small soft">Every rule of its policy allowed it.</span>
        )}
      </div>
      {violations.length > 0 && (
        <ul class="rules" aria-label="Rules it broke">
          {violations.map((violation) => (
            <li key={violation.rule}>{capital(describeViolation(violation))}.</li>
          ))}
        </ul>
      )}
      <dl class="facts">
        {facts.flatMap(([name, value, isMono = false]) =>
          value === null
            ? []
            : [
                <dt key={`${name} name`}>{name}</dt>,
                <dd key={name} class={isMono ? 'mono small' : undefined}>
                  <Untrusted>{value}</Untrusted>
                </dd>,
              ],
        )}
        <dt>Receipt</dt>
        <dd>
          <Receipt decisionId={decision.decisionId} receipt={decision.receipt} />
        </dd>
      </dl>
    </div>
  )
}
