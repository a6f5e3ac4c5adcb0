/** The rules that a decision evaluated: what each compares, what was used, and its result. */
import type { AgentsRulesResponse, ExplainedRule } from '../../client/operations.ts'
import { describeRule } from '../words/policy.ts'
import { Icon } from './icon.tsx'
import { Chip } from './marks.tsx'
import { Untrusted } from './quote.tsx'

/** `Allowed: 6 of 6 rules`. */
export function headOfRules(verdict: string, rules: readonly ExplainedRule[]): string {
  const countRules = (result: ExplainedRule['result']) =>
    rules.filter((rule) => rule.result === result).length
  const all = `of ${rules.length} rules`
  if (verdict === 'allow') return `Allowed: ${countRules('kept') + countRules('approved')} ${all}`
  if (verdict === 'deny') return `Denied: ${countRules('broken')} ${all} broken`
  if (verdict === 'approval_required') return 'Asked you'
  return 'Denied: too little money'
}

export function RulesTable({ rules }: { readonly rules: AgentsRulesResponse['rules'] }) {
  return (
    <div class="tablewrap">
      <table class="table table--flush rulestable">
        <thead>
          <tr>
            <th scope="col">Rule</th>
            <th scope="col" class="end">
              This payment
            </th>
            <th scope="col" class="end">
              Used before
            </th>
            <th scope="col" class="end">
              Result
            </th>
          </tr>
        </thead>
        <tbody>
          {rules.map((rule) => {
            const { name, requested, used, limit } = describeRule(rule)
            return (
              <tr key={rule.rule}>
                <td>{name}</td>
                <td class="end">
                  <Untrusted>{requested}</Untrusted>
                </td>
                <td class="end">
                  {used !== null && `${used} `}
                  <span class="faint">
                    <Untrusted>{limit}</Untrusted>
                  </span>
                </td>
                <td class="end">
                  <Result result={rule.result} />
                </td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

function Result({ result }: { readonly result: ExplainedRule['result'] }) {
  if (result === 'broken')
    return (
      <Chip kind="bad" icon="close">
        Broken
      </Chip>
    )
  if (result === 'approved')
    return (
      <Chip kind="info" icon="passkey">
        You approved
      </Chip>
    )
  if (result === 'asked')
    return (
      <Chip kind="warn" icon="clock">
        Asked you
      </Chip>
    )
  return (
    <span class="state">
      <Icon name="check" />
      Kept
    </span>
  )
}
