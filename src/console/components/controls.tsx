/** Controls: buttons that work, fields, segments, copying and dialogs. */
import { type ComponentChildren, createContext, type JSX } from 'preact'
import { useContext, useEffect, useId, useRef, useState } from 'preact/hooks'
import { findMember, forgetEntries, listIssues } from '../data/gateway.ts'
import { Icon, type IconName } from './icon.tsx'
import { toast, toastFailure, wordsOfFailure } from './messages.tsx'

type ButtonKind = 'primary' | 'quiet' | 'stop' | 'stopline' | 'plain'

/** State that a form shares with its fields and buttons. */
interface FormState {
  /** Problem of an entry, by member of the request. */
  readonly wrong: ReadonlyMap<string, string>
  /** Members whose fields are shown. */
  readonly members: Set<string>
  /** Says a failure at the field that it is about, otherwise at the form's end; null clears all. */
  readonly tell: (error: unknown) => void
  readonly clear: (member: string) => void
}

const FormContext = createContext<FormState | null>(null)

/** Fields and buttons whose failures are said here: each at its field, the others at the end. */
export function Form({ children }: { readonly children: ComponentChildren }) {
  const [wrong, setWrong] = useState<ReadonlyMap<string, string>>(new Map())
  const [failure, setFailure] = useState<string | null>(null)
  const members = useRef(new Set<string>())
  const end = useRef<HTMLDivElement>(null)
  const tell = (error: unknown) => {
    const at = error === null ? new Map<string, string>() : placeFailure(error, members.current)
    setWrong(at)
    setFailure(error === null || at.size > 0 ? null : wordsOfFailure(error))
    // The field that is wrong may be out of sight.
    if (at.size > 0)
      setTimeout(() => end.current?.parentElement?.querySelector<HTMLElement>('[aria-invalid=true]')?.focus())
  }
  const clear = (member: string) => {
    if (wrong.has(member)) setWrong(new Map([...wrong].filter(([name]) => name !== member)))
  }
  return (
    <FormContext.Provider value={{ wrong, members: members.current, tell, clear }}>
      {children}
      <div ref={end} class="form__end" role="alert">
        {failure !== null && (
          <p class="field__error wrap">
            <Icon name="warning" small />
            {failure}
          </p>
        )}
      </div>
    </FormContext.Provider>
  )
}

function extractMember(path: string): string {
  return path.split('.').at(-1) ?? ''
}

/** Finds the fields that a failure is about. @returns nothing if any of it belongs to none of them */
function placeFailure(error: unknown, members: ReadonlySet<string>): Map<string, string> {
  const about = findMember(error)
  const given =
    about === undefined ? listIssues(error) : [{ path: about, words: wordsOfFailure(error) ?? '' }]
  const placed = given.flatMap(({ path, words }) => {
    const member = members.has(path)
      ? path
      : [...members].find((name) => extractMember(name) === extractMember(path))
    return member === undefined ? [] : [[member, words] as const]
  })
  return placed.length === given.length ? new Map(placed) : new Map()
}

/**
 * A button whose work takes time: disabled meanwhile, and its failure is said in its form, otherwise in a toast.
 * @property busy words while it works
 */
export function ActionButton({
  run,
  kind = 'plain',
  size,
  isFull = false,
  icon,
  busy,
  disabled = false,
  label,
  autofocus = false,
  children,
}: {
  readonly run: () => Promise<unknown>
  readonly kind?: ButtonKind
  readonly size?: 'sm' | 'lg'
  readonly isFull?: boolean
  readonly icon?: IconName
  readonly busy?: string
  readonly disabled?: boolean
  /** `aria-label`, where the words alone say too little. */
  readonly label?: string
  readonly autofocus?: boolean
  readonly children: ComponentChildren
}) {
  const [isBusy, setBusy] = useState(false)
  const isMounted = useRef(true)
  useEffect(
    () => () => {
      isMounted.current = false
    },
    [],
  )
  const form = useContext(FormContext)
  const button = useRef<HTMLButtonElement>(null)
  const press = async () => {
    setBusy(true)
    form?.tell(null)
    try {
      await run()
      forgetEntries()
    } catch (error) {
      if (form === null || !isMounted.current) toastFailure(error)
      else form.tell(error)
    } finally {
      if (isMounted.current) setBusy(false)
      // A disabled button loses the focus, and a dialog that was opened meanwhile could not give it back.
      setTimeout(() => {
        if (document.activeElement === document.body) button.current?.focus()
      })
    }
  }
  const classes = [
    'btn',
    kind === 'plain' ? '' : `btn--${kind}`,
    size ? `btn--${size}` : '',
    isFull ? 'btn--full' : '',
  ]
  return (
    <button
      ref={button}
      class={classes.filter((one) => one !== '').join(' ')}
      type="button"
      disabled={disabled || isBusy}
      aria-busy={isBusy}
      aria-label={label}
      autofocus={autofocus}
      onClick={() => void press()}
    >
      {icon !== undefined && <Icon name={icon} small={size === 'sm'} />}
      {isBusy && busy !== undefined ? busy : children}
    </button>
  )
}

/** A labelled input with its hint and its error. */
export function Field({
  label,
  hint,
  error,
  of: member,
  children,
}: {
  readonly label: ComponentChildren
  readonly hint?: ComponentChildren
  readonly error?: string | undefined
  /** Member of the request that it is: what the gateway says of it is shown here. */
  readonly of?: string
  /** @param props id and descriptions for the input */
  readonly children: (props: {
    id: string
    'aria-describedby'?: string
    'aria-invalid'?: 'true'
  }) => ComponentChildren
}) {
  const id = useId()
  const form = useContext(FormContext)
  useEffect(() => {
    if (form === null || member === undefined) return
    form.members.add(member)
    return () => {
      form.members.delete(member)
    }
  }, [form?.members, member])
  const refused = member === undefined ? undefined : form?.wrong.get(member)
  const words = error === undefined || error === '' ? refused : error
  const described = words !== undefined || hint !== undefined ? { 'aria-describedby': `${id}-words` } : {}
  return (
    <div class="field" onInput={member === undefined ? undefined : () => form?.clear(member)}>
      <label for={id}>{label}</label>
      {children({ id, ...described, ...(words === undefined ? {} : { 'aria-invalid': 'true' as const }) })}
      {words === undefined ? (
        hint !== undefined && (
          <p class="field__hint" id={`${id}-words`}>
            {hint}
          </p>
        )
      ) : (
        <p class="field__error" id={`${id}-words`}>
          <Icon name="warning" small />
          {words}
        </p>
      )}
    </div>
  )
}

/** An amount in USD. */
export function MoneyInput(props: JSX.IntrinsicElements['input']) {
  return (
    <span class="money">
      <input class="input" inputMode="decimal" autoComplete="off" {...props} />
    </span>
  )
}

export function Segments<Value extends string>({
  label,
  options,
  value,
  choose,
}: {
  readonly label: string
  readonly options: readonly (readonly [value: Value, words: string])[]
  readonly value: Value
  readonly choose: (value: Value) => void
}) {
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset cannot be laid out in a row of a head.
    <div class="seg" role="group" aria-label={label}>
      {options.map(([option, words]) => (
        <button type="button" key={option} aria-pressed={option === value} onClick={() => choose(option)}>
          {words}
        </button>
      ))}
    </div>
  )
}

/** A switch with its words. The state shown is the gateway's, never the wish. */
export function Setting({
  label,
  hint,
  isOn,
  change,
  disabled = false,
}: {
  readonly label: ComponentChildren
  readonly hint?: ComponentChildren
  readonly isOn: boolean
  readonly change: (isOn: boolean) => Promise<unknown>
  readonly disabled?: boolean
}) {
  const id = useId()
  const [isBusy, setBusy] = useState(false)
  const input = useRef<HTMLInputElement>(null)
  const flip = async (wish: boolean) => {
    setBusy(true)
    try {
      await change(wish)
    } catch (error) {
      toastFailure(error)
    } finally {
      setBusy(false)
      if (input.current !== null) input.current.checked = isOn
    }
  }
  return (
    <div class="setting">
      <label for={id}>
        <span>{label}</span>
        {hint !== undefined && <span class="small faint">{hint}</span>}
      </label>
      <input
        ref={input}
        class="switch"
        type="checkbox"
        role="switch"
        aria-checked={isOn}
        id={id}
        checked={isOn}
        disabled={disabled || isBusy}
        onChange={(event) => void flip(event.currentTarget.checked)}
      />
    </div>
  )
}

/** Text to copy, such as a command. */
export function Copy({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <div class="copy">
      <code>{text}</code>
      <CopyButton text={text} what={what} />
    </div>
  )
}

/** @property what such as `the command`. @property isNamed true for a button with a word. */
export function CopyButton({
  text,
  what,
  isNamed = false,
}: {
  readonly text: string
  readonly what: string
  readonly isNamed?: boolean
}) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text)
      toast('Copied.')
    } catch {
      toast('The browser did not allow copying. Select the text instead.')
    }
  }
  return (
    <button
      class={isNamed ? 'btn btn--sm' : 'iconbtn iconbtn--sm'}
      type="button"
      aria-label={`Copy ${what}`}
      onClick={() => void copy()}
    >
      <Icon name="copy" small />
      {isNamed && 'Copy all'}
    </button>
  )
}

/** A modal dialog. It is in the page only while it is open. Closed by Escape, its buttons, or {@link close}. */
export function Dialog({
  title,
  close,
  children,
}: {
  readonly title: ComponentChildren
  readonly close: () => void
  readonly children: ComponentChildren
}) {
  const id = useId()
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const before = document.activeElement
    if (dialog.current?.open === false) dialog.current.showModal()
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus()
    }
  }, [])
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault()
        close()
      }}
    >
      <div class="dialog">
        <h2 id={id}>{title}</h2>
        <Form>{children}</Form>
      </div>
    </dialog>
  )
}

/** The end of a dialog: the way out first, then what it is for. @property leave words of the way out */
export function DialogButtons({
  close,
  leave = 'Cancel',
  children,
}: {
  readonly close: () => void
  readonly leave?: string
  readonly children?: ComponentChildren
}) {
  return (
    <div class="dialog__buttons">
      <button class="btn" type="button" onClick={close}>
        {leave}
      </button>
      {children}
    </div>
  )
}
