/** Banners, toasts, empty and failed views, and skeletons. */
import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { BursarUnreachable } from '../../client/problem.ts'
import { describeError, GivenUp, isShutOut, signInAgain } from '../data/gateway.ts'
import { Icon, type IconName } from './icon.tsx'

export function Banner({
  kind,
  icon,
  children,
  action,
}: {
  readonly kind?: 'warn' | 'bad' | 'sandbox'
  readonly icon: IconName
  readonly children: ComponentChildren
  readonly action?: ComponentChildren
}) {
  return (
    <div
      class={kind === undefined ? 'banner' : `banner banner--${kind}`}
      role={kind === 'bad' ? 'alert' : 'status'}
    >
      <Icon name={icon} />
      <span class="grow">{children}</span>
      {action}
    </div>
  )
}

/** A view without content: why, and what to do. */
export function Empty({
  icon,
  title,
  children,
  action,
}: {
  readonly icon: IconName
  readonly title: string
  readonly children: ComponentChildren
  readonly action?: ComponentChildren
}) {
  return (
    <div class="empty">
      <span class="empty__mark">
        <Icon name={icon} />
      </span>
      <h3>{title}</h3>
      <p>{children}</p>
      {action && <div class="row">{action}</div>}
    </div>
  )
}

/** @property subject such as `The statement`. */
export function Failed({
  subject,
  error,
  retry,
}: {
  readonly subject: string
  readonly error: unknown
  readonly retry: () => void
}) {
  return (
    <Empty
      icon="warning"
      title={`${subject} did not load`}
      action={
        <button class="btn" type="button" onClick={retry}>
          <Icon name="retry" small />
          Try again
        </button>
      }
    >
      {error instanceof BursarUnreachable ? 'Bursar did not answer.' : describeError(error)} Your money is not
      affected.
    </Empty>
  )
}

const SKELETON_AFTER_MS = 150

/** Rows of the size of what comes, shown after 150 ms. */
export function SkeletonRows({ rows = 3 }: { readonly rows?: number }) {
  const [isShown, show] = useState(false)
  useEffect(() => {
    const timer = setTimeout(() => show(true), SKELETON_AFTER_MS)
    return () => clearTimeout(timer)
  }, [])
  return (
    <ul class="rows" aria-busy="true" aria-label="Loading">
      {Array.from({ length: rows }, (_, row) => (
        <li class="item" key={row}>
          {isShown && (
            <>
              <span class="bone bone--glyph" />
              <span class="item__main stack stack--tight">
                <span class="bone bone--w3" />
                <span class="bone bone--w2" />
              </span>
              <span class="bone bone--w1" />
            </>
          )}
        </li>
      ))}
    </ul>
  )
}

interface ToastMessage {
  readonly id: number
  readonly text: string
  readonly action?: { readonly label: string; readonly run: () => void } | undefined
}

const TOAST_MS = 6_000
/** A failure is longer, and must be understood. */
const FAILURE_MS = 15_000
const toasts = signal<readonly ToastMessage[]>([])
let lastToast = 0

/** Says an outcome for six seconds. @param action only where undoing is real. */
export function toast(text: string, action?: ToastMessage['action'], ms = TOAST_MS): void {
  lastToast += 1
  const id = lastToast
  toasts.value = [...toasts.value.slice(-2), { id, text, action }]
  setTimeout(() => {
    toasts.value = toasts.value.filter((one) => one.id !== id)
  }, ms)
}

/** Why an action failed, in words. Null when the person gave it up, or the session ended and begins anew. */
export function wordsOfFailure(error: unknown): string | null {
  if (isShutOut(error)) signInAgain()
  return isShutOut(error) || error instanceof GivenUp ? null : describeError(error)
}

/** Says why an action failed. */
export function toastFailure(error: unknown): void {
  const words = wordsOfFailure(error)
  if (words !== null) toast(words, undefined, FAILURE_MS)
}

export function Toasts() {
  const box = useRef<HTMLDivElement>(null)
  const shown = toasts.value
  useEffect(() => {
    // The newest layer is the top one: a toast is read above a dialog that was opened before it.
    if (document.querySelector('dialog[open]') !== null) box.current?.hidePopover()
    if (box.current?.matches(':popover-open') === false) box.current.showPopover()
  }, [shown])
  return (
    <div class="toasts" role="status" aria-live="polite" popover="manual" ref={box}>
      {shown.map(({ id, text, action }) => (
        <div class="toast" key={id}>
          <span class="grow wrap">{text}</span>
          {action !== undefined && (
            <button class="btn btn--sm" type="button" onClick={action.run}>
              {action.label}
            </button>
          )}
        </div>
      ))}
    </div>
  )
}
