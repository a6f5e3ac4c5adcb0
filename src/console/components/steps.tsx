/** The steps of a form: those that are done lead back to what was entered. */

export function Steps<Step extends string>({
  steps,
  current,
  go,
}: {
  readonly steps: readonly (readonly [step: Step, words: string])[]
  readonly current: Step
  readonly go: (step: Step) => void
}) {
  const at = steps.findIndex(([one]) => one === current)
  return (
    <ol class="steps">
      {steps.map(([one, words], position) => (
        <li key={one} class={position < at ? 'is-done' : undefined}>
          <button
            type="button"
            aria-current={one === current ? 'step' : undefined}
            disabled={position > at}
            onClick={() => go(one)}
          >
            <i>{position + 1}</i>
            <span>{words}</span>
          </button>
        </li>
      ))}
    </ol>
  )
}
