/** The error pages, from the failure table. `/errors/{code}` is the `type` of every problem. */

import { raw } from 'hono/html'
import { type FailureCode, failureCodes, failures } from '../../../../core/failures/failure.ts'
import { failureGuide } from '../../../../core/failures/failure-guide.ts'
import { problemExample } from '../../openapi/problem.ts'
import { Layout, type Site } from './layout.tsx'
import { renderInline } from './markdown.ts'

export function ErrorsPage({ site }: { readonly site: Site }) {
  return (
    <Layout site={site} title="Errors" href="/errors">
      <p class="eyebrow">Reference</p>
      <h1>Errors</h1>
      <p class="lead">
        Every error is <code>application/problem+json</code> (RFC 9457): <code>detail</code> says what
        happened, <code>hint</code> says what to do, <code>code</code> is stable, and <code>type</code> links
        to its page. Retry a retryable request with the same <code>Idempotency-Key</code>.
      </p>
      <ul class="failures">
        {failureCodes.map((code) => (
          <li>
            <span class="status">{failures[code].status}</span>
            <a href={`/errors/${code}`}>
              <code>{code}</code>
            </a>
            <span>
              {failures[code].title}
              {failures[code].retry ? <span class="chip">can be retried</span> : ''}
            </span>
          </li>
        ))}
      </ul>
    </Layout>
  )
}

export function ErrorPage({ site, code }: { readonly site: Site; readonly code: FailureCode }) {
  const { status, title, retry } = failures[code]
  const { meaning, remedy, members } = failureGuide[code]
  return (
    <Layout site={site} title={title} href={`/errors/${code}`}>
      <p class="eyebrow">
        <a href="/errors">Errors</a>
      </p>
      <h1>{title}</h1>
      <p class="lead">
        <code>{code}</code>, status {status}
      </p>
      <h2>What it means</h2>
      <p>{raw(renderInline(meaning))}</p>
      <h2>What to do</h2>
      <p>{raw(renderInline(remedy))}</p>
      <h2>Can the request be retried?</h2>
      <p>{retry ? yes : no}</p>
      <h2>Members</h2>
      <p>
        <code>type</code>, <code>title</code>, <code>status</code>, <code>detail</code>, <code>instance</code>
        , <code>code</code>, <code>requestId</code>, often <code>hint</code>
        {Object.keys(members).map((name) => (
          <>
            , <code>{name}</code>
          </>
        ))}
        .
      </p>
      <h2>Example</h2>
      <pre tabindex={0}>{JSON.stringify(problemExample(code), null, 2)}</pre>
    </Layout>
  )
}

const yes =
  'Yes, unchanged and with the same Idempotency-Key: after Retry-After if the response has it, otherwise once the cause is resolved.'
const no = 'No: the same request fails again until its cause is resolved.'
