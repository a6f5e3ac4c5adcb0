/** An opened entry of the statement: the rules of its decision, and its receipt to keep or print. */
import type { ComponentChildren } from 'preact'
import { Link } from 'wouter-preact'
import type { ActivityEntry, Decision } from '../../client/operations.ts'
import { deployment } from '../data/account.ts'
import { decisionById, rulesById } from '../data/money.ts'
import { useResource } from '../data/resource.ts'
import { saveFile } from '../data/save-file.ts'
import { formatDecimal, formatUsd } from '../words/money.ts'
import { nameChain } from '../words/names.ts'
import { capital, describeViolation } from '../words/policy.ts'
import { formatMoment } from '../words/time.ts'
import { Copy, CopyButton } from './controls.tsx'
import { Icon } from './icon.tsx'
import { Failed, SkeletonRows } from './messages.tsx'
import { PaymentStory } from './payment-story.tsx'
import { Untrusted } from './quote.tsx'
import { Receipt } from './receipt.tsx'
import { headRules, RulesTable } from './rules-table.tsx'
import { nameKind, shownAmount } from './statement.tsx'

interface Shown {
  readonly entry: ActivityEntry
  /** Name of the agent that spent; null for a person. */
  readonly agent: string | null
}

export function EntryDetails({ entry, agent }: Shown) {
  return (
    <div class="open">
      {entry.decisionId === null ? (
        <>
          <ReceiptFacts entry={entry} agent={agent} decision={null} />
          <p class="small soft">Nothing was spent, so no rule applied.</p>
        </>
      ) : (
        <WithDecision entry={entry} agent={agent} id={entry.decisionId} />
      )}
    </div>
  )
}

function WithDecision({ entry, agent, id }: Shown & { readonly id: string }) {
  const source = decisionById(id)
  const state = useResource(source)
  if (state.status === 'loading') return <SkeletonRows rows={3} />
  if (state.status === 'failed')
    return <Failed subject="The decision" error={state.error} retry={source.reload} />
  const decision = state.value ?? null
  return (
    <>
      <div class="stack stack--loose">
        <PaymentStory entry={entry} />
        {decision !== null && <Rules decision={decision} />}
      </div>
      <ReceiptFacts entry={entry} agent={agent} decision={decision} />
    </>
  )
}

function Rules({ decision }: { readonly decision: Decision }) {
  const source = rulesById(decision.decisionId)
  const state = useResource(source)
  if (state.status === 'loading') return <SkeletonRows rows={3} />
  if (state.status === 'failed')
    return <Failed subject="The table of rules" error={state.error} retry={source.reload} />
  const { rules, complete } = state.value
  const isDenied = decision.verdict === 'deny'
  if (rules.length === 0)
    return (
      <p class="small soft">
        {complete
          ? 'A person paid this: the rules of agents did not apply.'
          : 'Every rule of its policy allowed it. That policy has been replaced since, so its limits are not listed.'}
      </p>
    )
  return (
    <div class="stack">
      <div class="stack stack--tight">
        <h3>{complete ? headRules(decision.verdict, rules) : 'The rules it broke'}</h3>
        <RulesTable rules={rules} />
        {!complete && (
          <p class="small faint">Its policy has been replaced since, so the rules it kept are not listed.</p>
        )}
      </div>
      {isDenied && (
        <div class="stack stack--tight">
          <h3>Why</h3>
          <ul class="rules" aria-label="Rules it broke">
            {decision.violations.map((violation) => (
              <li key={violation.rule}>{capital(describeViolation(violation))}.</li>
            ))}
          </ul>
          {decision.agentId !== null && (
            <div class="row">
              <Link class="btn btn--sm" href={`/agents/${decision.agentId}`}>
                Change what it may do
              </Link>
            </div>
          )}
        </div>
      )}
    </div>
  )
}

function ReceiptFacts({ entry, agent, decision }: Shown & { readonly decision: Decision | null }) {
  const { contact, counterparty, transactionHash, agentId, memo, object, refundOf } = entry
  const amount = shownAmount(entry)
  return (
    <div class="stack">
      <h3>Receipt</h3>
      <dl class="facts">
        <Fact name="When">{formatMoment(entry.at)}</Fact>
        {contact !== null && (
          <Fact name="Contact">
            <Untrusted>{contact}</Untrusted>
          </Fact>
        )}
        {counterparty !== null && (
          <Fact name={entry.direction === 'in' ? 'From' : 'To'}>
            <Untrusted>{counterparty}</Untrusted>
          </Fact>
        )}
        {memo !== null && (
          <Fact name="Memo">
            <Untrusted>{memo}</Untrusted>
          </Fact>
        )}
        {refundOf !== null && (
          <Fact name="Returns">
            <Link href={`/activity?entry=${encodeURIComponent(refundOf.id)}`}>An earlier payment</Link>
          </Fact>
        )}
        {entry.task !== null && (
          <Fact name="Task">
            <Link href={`/activity?task=${encodeURIComponent(entry.task)}`}>
              <Untrusted>{entry.task}</Untrusted>
            </Link>
          </Fact>
        )}
        {amount !== null && (
          <Fact name="Amount">
            {formatDecimal(amount)} {entry.asset}
            {decision?.usd != null && entry.asset !== 'USD' && (
              <span class="faint"> {formatUsd(decision.usd)}</span>
            )}
          </Fact>
        )}
        {decision?.chain != null && <Fact name="Chain">{nameChain(decision.chain)}</Fact>}
        {decision?.mcc != null && <Fact name="Kind of shop">{decision.mcc}</Fact>}
        {decision?.policyVersion != null && <Fact name="Policy">Version {decision.policyVersion}</Fact>}
        {object.kind !== 'decision' && (
          <Fact name={nameKind(entry.kind)}>
            <span class="mono small">{object.id}</span>
          </Fact>
        )}
        {decision !== null && (
          <>
            <Fact name="Decision">
              <span class="mono small">{decision.decisionId}</span>
            </Fact>
            <Fact name="Signature">
              <Receipt decisionId={decision.decisionId} receipt={decision.receipt} />
            </Fact>
          </>
        )}
      </dl>
      {transactionHash !== null && (
        <div class="stack stack--tight">
          <span class="label">Transaction</span>
          <Copy text={transactionHash} what="the transaction hash" />
        </div>
      )}
      <div class="row row--wrap">
        {decision !== null && (
          <button class="btn btn--sm" type="button" onClick={() => saveReceipt(entry, decision)}>
            <Icon name="download" small />
            Receipt
          </button>
        )}
        <button class="btn btn--sm" type="button" onClick={(event) => printEntry(event.currentTarget)}>
          Print
        </button>
        <CopyButton
          text={decision?.decisionId ?? object.id}
          what={decision === null ? 'the id' : 'the id of the decision'}
        />
        {agentId !== null && agent !== null && (
          <Link class="btn btn--sm btn--quiet" href={`/agents/${agentId}`}>
            <Untrusted>{agent}</Untrusted>
          </Link>
        )}
      </div>
    </div>
  )
}

function Fact({ name, children }: { readonly name: string; readonly children: ComponentChildren }) {
  return (
    <>
      <dt>{name}</dt>
      <dd class="wrap">{children}</dd>
    </>
  )
}

/** The entry, its decision and the signed receipt, with the place of the keys that verify it. */
function saveReceipt(entry: ActivityEntry, decision: Decision): void {
  const content = { entry, decision, keys: `${deployment.origin}/.well-known/jwks.json` }
  saveFile(`receipt-${decision.decisionId}.json`, 'application/json', [
    `${JSON.stringify(content, null, 2)}\n`,
  ])
}

/** Prints one entry, without the rest of the statement. */
function printEntry(button: Element): void {
  const row = button.closest('li')
  const page = document.documentElement
  row?.classList.add('printed')
  page.classList.add('prints-one')
  window.addEventListener(
    'afterprint',
    () => {
      row?.classList.remove('printed')
      page.classList.remove('prints-one')
    },
    { once: true },
  )
  window.print()
}
