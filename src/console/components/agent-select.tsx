/** Chooses an agent, or the one alternative to all of them. */
import type { JSX } from 'preact'

export function AgentSelect({
  agents,
  other: [otherValue, otherWords],
  value,
  choose,
  field,
}: {
  readonly agents: readonly { readonly agentId: string; readonly name: string }[]
  readonly other: readonly [value: string, words: string]
  readonly value: string
  readonly choose: (value: string) => void
  /** Attributes that a field passes to its input. */
  readonly field: JSX.IntrinsicElements['select']
}) {
  return (
    <select class="input" value={value} onChange={(event) => choose(event.currentTarget.value)} {...field}>
      <option value={otherValue}>{otherWords}</option>
      {agents.map(({ agentId, name }) => (
        <option key={agentId} value={agentId}>
          {name}
        </option>
      ))}
    </select>
  )
}
