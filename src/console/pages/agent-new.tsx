/** A new agent in three steps: who it is, what it may do, and how it connects. */
import { useRef, useState } from 'preact/hooks'
import { Link } from 'wouter-preact'
import { ConnectAgent } from '../components/connect-agent.tsx'
import { Field } from '../components/controls.tsx'
import { useTitle } from '../components/panel.tsx'
import { PolicyEditor } from '../components/policy-editor.tsx'
import { Steps } from '../components/steps.tsx'
import { agents } from '../data/money.ts'
import { loadedValue, useResource } from '../data/resource.ts'
import { draftPreset, type PolicyDraft, presets } from '../words/policy-draft.ts'

type Step = 'who' | 'policy' | 'connect'

const steps = [
  ['who', 'Who it is'],
  ['policy', 'What it may do'],
  ['connect', 'How it connects'],
] as const

/** Agents whose past a new policy is tried on. */
const MAX_TRIED = 4

export function AgentNewPage() {
  useTitle('New agent')
  const [step, go] = useState<Step>('who')
  const [name, rename] = useState('My agent')
  const [draft, change] = useState<PolicyDraft>(draftPreset(presets[0]))
  const keys = loadedValue(useResource(agents))?.keys ?? []
  const heading = useRef<HTMLHeadingElement>(null)
  const move = (to: Step) => {
    go(to)
    scrollTo(0, 0)
    heading.current?.focus({ preventScroll: true })
  }
  return (
    <>
      <div class="pagehead">
        <div class="pagehead__text">
          <h1 ref={heading} tabIndex={-1}>
            New agent
          </h1>
        </div>
      </div>
      <Steps steps={steps} current={step} go={move} />
      {step === 'who' && <Who name={name} rename={rename} next={() => move('policy')} />}
      {step === 'policy' && (
        <PolicyEditor
          draft={draft}
          change={change}
          base={null}
          keyIds={keys.slice(0, MAX_TRIED).map(({ agentId }) => agentId)}
          name={name}
          back={
            <button class="btn btn--quiet" type="button" onClick={() => move('who')}>
              Back
            </button>
          }
          save={async () => move('connect')}
          saveWords="Continue"
        />
      )}
      {step === 'connect' && <ConnectAgent name={name} draft={draft} back={() => move('policy')} />}
    </>
  )
}

function Who({
  name,
  rename,
  next,
}: {
  readonly name: string
  readonly rename: (name: string) => void
  readonly next: () => void
}) {
  const isEmpty = name.trim() === ''
  return (
    <form
      class="panel"
      onSubmit={(event) => {
        event.preventDefault()
        if (!isEmpty) next()
      }}
    >
      <h2 class="hide">Who it is</h2>
      <div class="panel__body stack stack--loose">
        <Field
          label="Name"
          hint="You see it on every payment it makes."
          error={isEmpty ? 'Give it a name that you recognize.' : undefined}
        >
          {(props) => (
            <input
              class="input"
              maxLength={60}
              autoComplete="off"
              autofocus
              value={name}
              onFocus={(event) => event.currentTarget.select()}
              onInput={(event) => rename(event.currentTarget.value)}
              {...props}
            />
          )}
        </Field>
      </div>
      <div class="actionbar">
        <Link class="btn btn--quiet" href="/agents">
          Cancel
        </Link>
        <button class="btn btn--primary" type="submit" disabled={isEmpty}>
          Continue
        </button>
      </div>
    </form>
  )
}
